//! From tokens to [`Node`] trees. What is open stands on a stack; nothing here recurses.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use super::error::{Problem, ReadError, Refusal};
use super::scan::{Scanner, syntax};
use super::token::{Kind, Mark, Tok, Token, kind};
use super::{Comment, Dialect, Limits, YamlDocument};
use crate::node::{Node, NodeKind, Span, Style};

type Result<T> = std::result::Result<T, ReadError>;

/// The prefix that `!!` stands for.
const CORE: &str = "tag:yaml.org,2002:";

/// What is expected next in an open collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    BlockEntry,
    /// A list in the column of the key that it belongs to.
    Indentless,
    BlockKey,
    BlockValue,
    FlowEntry {
        first: bool,
    },
    /// A mapping of one pair in `[ ]`.
    PairKey,
    PairValue,
    PairEnd,
    FlowKey {
        first: bool,
    },
    FlowValue,
    /// The value of an entry that is a key only.
    FlowNoValue,
}

impl Step {
    fn in_brackets(self) -> bool {
        use Step::{FlowEntry, FlowKey, FlowNoValue, FlowValue};
        matches!(self, FlowEntry { .. } | FlowKey { .. } | FlowValue | FlowNoValue)
    }
}

enum Items {
    List(Vec<Node>),
    Map { entries: Vec<(Node, Node)>, key: Option<Node> },
}

/// A collection that is still open.
struct Frame<'a> {
    step: Step,
    head: Head<'a>,
    body: Mark,
    items: Items,
    /// What an alias of this collection would count so far, aliases expanded.
    weight: usize,
    /// Levels below, aliases expanded.
    height: usize,
    end: u32,
}

/// Tag and anchor of a node.
struct Head<'a> {
    start: Mark,
    tag: Option<String>,
    anchor: Option<(&'a str, usize)>,
}

struct Target {
    node: Arc<Node>,
    weight: usize,
    height: usize,
}

pub(super) struct Builder<'a> {
    scanner: Scanner<'a>,
    dialect: Dialect,
    limits: &'a Limits,
    depth: usize,
    stack: Vec<Frame<'a>>,
    root: Option<Node>,
    /// The `%TAG` directives of this document.
    handles: HashMap<&'a str, Cow<'a, str>>,
    /// Anchors by name, for the whole stream as Talos has it.
    anchors: HashMap<&'a str, usize>,
    /// Every anchored node; nothing while it is open.
    targets: Vec<Option<Target>>,
    nodes: usize,
    alias_nodes: usize,
}

impl<'a> Builder<'a> {
    pub fn new(text: &'a str, dialect: Dialect, limits: &'a Limits, comments: bool) -> Self {
        let depth = limits.depth.min(Limits::DEEPEST);
        Builder {
            scanner: Scanner::new(text, dialect, depth, comments),
            dialect,
            limits,
            depth,
            stack: Vec::new(),
            root: None,
            handles: HashMap::new(),
            anchors: HashMap::new(),
            targets: Vec::new(),
            nodes: 0,
            alias_nodes: 0,
        }
    }

    /// Every document, each from where it begins on, and the comments if they were asked for.
    pub fn stream(mut self) -> Result<(Vec<YamlDocument>, Vec<Comment>)> {
        let mut documents = Vec::new();
        loop {
            let (mut next, mut start) = self.peek()?;
            let first = documents.is_empty();
            while next == Kind::DocumentEnd && (!first || self.dialect >= Dialect::Rc5) {
                self.scanner.skip();
                (next, start) = self.peek()?;
            }
            match next {
                Kind::StreamEnd => break,
                Kind::Directive | Kind::DocumentStart => self.explicit()?,
                _ if first => self.node(true, false)?,
                _ => return Err(syntax(start, Problem::DocumentStart)),
            }
            self.finish_collections()?;
            let at = start.at as usize;
            let root = self.root.take().filter(|node| !node.is_null());
            documents.push(YamlDocument { root, pos: start.pos(), span: at..at });
            self.handles.clear();
            if self.peek()?.0 == Kind::DocumentEnd {
                self.scanner.skip();
            }
        }
        Ok((documents, self.scanner.into_comments()))
    }

    /// Directives, `---`, and the beginning of what follows.
    fn explicit(&mut self) -> Result<()> {
        let mut version = false;
        while self.peek()?.0 == Kind::Directive {
            let Some(Token { tok, start, .. }) = self.scanner.take() else { break };
            match tok {
                Tok::Version(_) if version => return Err(syntax(start, Problem::DirectiveTwice)),
                Tok::Version(false) => return Err(syntax(start, Problem::OtherVersion)),
                Tok::TagDirective(tag) if self.handles.contains_key(tag.handle) => {
                    return Err(syntax(start, Problem::DirectiveTwice));
                }
                Tok::TagDirective(tag) => drop(self.handles.insert(tag.handle, tag.rest)),
                _ => version = true,
            }
        }
        let (next, start) = self.peek()?;
        if next != Kind::DocumentStart {
            return Err(syntax(start, Problem::DocumentStart));
        }
        self.scanner.skip();
        let (next, start) = self.peek()?;
        match next {
            Kind::Directive | Kind::DocumentStart | Kind::DocumentEnd | Kind::StreamEnd => self.empty(start),
            _ => self.node(true, false),
        }
    }

    fn finish_collections(&mut self) -> Result<()> {
        while let Some(frame) = self.stack.last() {
            match frame.step {
                Step::BlockEntry | Step::Indentless => self.block_entry(frame.step)?,
                Step::BlockKey => self.block_key()?,
                Step::BlockValue => self.block_value()?,
                Step::FlowEntry { first } => self.flow_entry(first)?,
                Step::PairKey => self.pair_key()?,
                Step::PairValue => self.pair_value()?,
                Step::PairEnd => self.close(None)?,
                Step::FlowKey { first } => self.flow_key(first)?,
                Step::FlowValue => self.flow_value()?,
                Step::FlowNoValue => {
                    let (_, start) = self.peek()?;
                    self.goto(Step::FlowKey { first: false });
                    self.empty(start)?;
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn peek(&mut self) -> Result<(Kind, Mark)> {
        let token = self.scanner.head()?;
        Ok((kind(token), token.start))
    }

    fn goto(&mut self, step: Step) {
        if let Some(frame) = self.stack.last_mut() {
            frame.step = step;
        }
    }

    // the steps

    fn block_entry(&mut self, step: Step) -> Result<()> {
        let (next, start) = self.peek()?;
        match next {
            Kind::Entry => {
                self.scanner.skip();
                match (self.peek()?.0, step) {
                    (Kind::Entry | Kind::BlockEnd, _) | (Kind::Key | Kind::Value, Step::Indentless) => {
                        self.empty(start.after(1))
                    }
                    _ => self.node(true, false),
                }
            }
            _ if step == Step::Indentless => self.close(None),
            Kind::BlockEnd => {
                self.scanner.skip();
                self.close(None)
            }
            _ => Err(syntax(start, Problem::NextEntry)),
        }
    }

    fn block_key(&mut self) -> Result<()> {
        let (next, start) = self.peek()?;
        match next {
            Kind::Key => {
                self.scanner.skip();
                self.goto(Step::BlockValue);
                self.block_part(start.after(1))
            }
            Kind::BlockEnd => {
                self.scanner.skip();
                self.close(None)
            }
            _ => Err(syntax(start, Problem::NextKey)),
        }
    }

    fn block_value(&mut self) -> Result<()> {
        let (next, start) = self.peek()?;
        self.goto(Step::BlockKey);
        if next != Kind::Value {
            return self.empty(start);
        }
        self.scanner.skip();
        self.block_part(start.after(1))
    }

    /// A key or a value, or nothing, after its sign.
    fn block_part(&mut self, after: Mark) -> Result<()> {
        match self.peek()?.0 {
            Kind::Key | Kind::Value | Kind::BlockEnd => self.empty(after),
            _ => self.node(true, true),
        }
    }

    fn flow_entry(&mut self, first: bool) -> Result<()> {
        let (mut next, mut start) = self.peek()?;
        if !first && next != Kind::FlowSequenceEnd {
            if next != Kind::Comma {
                return Err(self.lacking(next, start, Problem::NextElement));
            }
            self.scanner.skip();
            (next, start) = self.peek()?;
        }
        self.goto(Step::FlowEntry { first: false });
        match next {
            Kind::FlowSequenceEnd => self.close_flow(),
            Kind::Key => {
                self.scanner.skip();
                let head = Head { start, tag: None, anchor: None };
                self.open(Step::PairKey, head, start)
            }
            _ => self.node(false, false),
        }
    }

    fn pair_key(&mut self) -> Result<()> {
        self.goto(Step::PairValue);
        let (next, start) = self.peek()?;
        match next {
            Kind::Value | Kind::Comma | Kind::FlowSequenceEnd => {
                // whatever it is, the library loses it here
                self.scanner.skip();
                self.empty(start.after(1))
            }
            _ => self.node(false, false),
        }
    }

    fn pair_value(&mut self) -> Result<()> {
        self.goto(Step::PairEnd);
        let (next, start) = self.peek()?;
        if next == Kind::Value {
            self.scanner.skip();
            if !matches!(self.peek()?.0, Kind::Comma | Kind::FlowSequenceEnd) {
                return self.node(false, false);
            }
        }
        self.empty(start)
    }

    fn flow_key(&mut self, first: bool) -> Result<()> {
        let (mut next, mut start) = self.peek()?;
        if !first && next != Kind::FlowMappingEnd {
            if next != Kind::Comma {
                return Err(self.lacking(next, start, Problem::NextPair));
            }
            self.scanner.skip();
            (next, _) = self.peek()?;
        }
        match next {
            Kind::FlowMappingEnd => self.close_flow(),
            Kind::Key => {
                self.scanner.skip();
                self.goto(Step::FlowValue);
                (next, start) = self.peek()?;
                match next {
                    Kind::Value | Kind::Comma | Kind::FlowMappingEnd => self.empty(start),
                    _ => self.node(false, false),
                }
            }
            _ => {
                self.goto(Step::FlowNoValue);
                self.node(false, false)
            }
        }
    }

    fn flow_value(&mut self) -> Result<()> {
        self.goto(Step::FlowKey { first: false });
        let (mut next, mut start) = self.peek()?;
        if next == Kind::Value {
            self.scanner.skip();
            (next, start) = self.peek()?;
            if !matches!(next, Kind::Comma | Kind::FlowMappingEnd) {
                return self.node(false, false);
            }
        }
        self.empty(start)
    }

    /// What goes on to the end lacks its bracket: that is said where it was opened.
    fn lacking(&self, next: Kind, at: Mark, problem: Problem) -> ReadError {
        let ends = matches!(next, Kind::StreamEnd | Kind::DocumentStart | Kind::DocumentEnd);
        match self.stack.iter().rfind(|frame| frame.step.in_brackets()) {
            Some(open) if ends => syntax(open.body, Problem::Bracket),
            _ => syntax(at, problem),
        }
    }

    // nodes

    /// A node: a scalar or an alias as a whole, a collection up to where its first part begins.
    fn node(&mut self, block: bool, indentless: bool) -> Result<()> {
        let (mut next, start) = self.peek()?;
        if next == Kind::Alias {
            return self.alias();
        }
        let (mut head, mut body, mut after) = (Head { start, tag: None, anchor: None }, start, None);
        if next == Kind::Property {
            after = Some(self.properties(&mut head)?);
            (next, body) = self.peek()?;
        }
        let step = match next {
            Kind::Entry if indentless => return self.open(Step::Indentless, head, body),
            Kind::Scalar => {
                let Some(Token { tok: Tok::Scalar { text, style }, end, .. }) = self.scanner.take() else {
                    return Err(syntax(body, Problem::Content));
                };
                return self.scalar(head, body, end, text.into_owned(), style);
            }
            Kind::FlowSequence => Step::FlowEntry { first: true },
            Kind::FlowMapping => Step::FlowKey { first: true },
            Kind::BlockSequence if block => Step::BlockEntry,
            Kind::BlockMapping if block => Step::BlockKey,
            // a tag or an anchor alone is an empty value
            _ => {
                return match after {
                    Some(after) => self.scalar(head, after, after.at, String::new(), Style::Plain),
                    None => Err(self.lacking(next, body, Problem::Content)),
                };
            }
        };
        self.scanner.skip();
        self.open(step, head, body)
    }

    /// Anchor and tag, in any order, each at most once. Gives the place after them.
    fn properties(&mut self, head: &mut Head<'a>) -> Result<Mark> {
        let mut end = head.start;
        let mut tag = None;
        while self.peek()?.0 == Kind::Property {
            let token = self.scanner.head()?;
            let after = token.start.after(token.end - token.start.at);
            match &token.tok {
                Tok::Anchor(name) if head.anchor.is_none() => {
                    head.anchor = Some((name, self.targets.len()));
                    self.scanner.skip();
                }
                Tok::Tag(_) if tag.is_none() => tag = self.scanner.take(),
                _ => break,
            }
            end = after;
        }
        if let Some(Token { tok: Tok::Tag(tag), start, .. }) = tag {
            head.tag = self.tag(tag.handle, tag.rest).ok_or_else(|| syntax(start, Problem::TagHandle))?;
        }
        if let Some((name, id)) = head.anchor {
            self.targets.push(None);
            self.anchors.insert(name, id);
        }
        Ok(end)
    }

    /// The full tag; nothing if the handle is not defined, and no tag for a lone `!` up to Talos 1.13.
    fn tag(&self, handle: &str, rest: Cow<'a, str>) -> Option<Option<String>> {
        let prefix = match self.handles.get(handle) {
            Some(prefix) => prefix.as_ref(),
            None => match handle {
                "" => "",
                "!" => "!",
                "!!" => CORE,
                _ => return None,
            },
        };
        let full = if prefix.is_empty() { rest.into_owned() } else { format!("{prefix}{rest}") };
        if full == "!" {
            return Some(Some(full).filter(|_| self.dialect >= Dialect::Rc5));
        }
        // the library knows the core tags by their short names, so that what looks like one is one
        Some(Some(match full.strip_prefix("!!") {
            Some(rest) => format!("{CORE}{rest}"),
            None => full,
        }))
    }

    fn count(&mut self, at: Mark) -> Result<()> {
        self.nodes += 1;
        if self.nodes > self.limits.nodes {
            return Err(ReadError::TooManyNodes { pos: at.pos(), limit: self.limits.nodes });
        }
        Ok(())
    }

    fn open(&mut self, step: Step, head: Head<'a>, body: Mark) -> Result<()> {
        self.count(body)?;
        if self.stack.len() >= self.depth {
            return Err(ReadError::TooDeep { pos: body.pos(), limit: self.depth });
        }
        let items = match step {
            Step::BlockEntry | Step::Indentless | Step::FlowEntry { .. } => Items::List(Vec::new()),
            _ => Items::Map { entries: Vec::new(), key: None },
        };
        self.stack.push(Frame { step, head, body, items, weight: 1, height: 1, end: body.at });
        Ok(())
    }

    fn close_flow(&mut self) -> Result<()> {
        let end = self.scanner.head()?.end;
        self.scanner.skip();
        self.close(Some(end))
    }

    fn close(&mut self, end: Option<u32>) -> Result<()> {
        let Some(frame) = self.stack.pop() else { return Ok(()) };
        let kind = match frame.items {
            Items::List(elements) => NodeKind::Sequence(elements),
            Items::Map { entries, .. } => NodeKind::Mapping(entries),
        };
        self.finish(frame.head, frame.body, end.unwrap_or(frame.end), kind, frame.weight, frame.height)
    }

    fn empty(&mut self, at: Mark) -> Result<()> {
        self.scalar(Head { start: at, tag: None, anchor: None }, at, at.at, String::new(), Style::Plain)
    }

    fn scalar(&mut self, head: Head<'a>, body: Mark, end: u32, text: String, style: Style) -> Result<()> {
        self.count(body)?;
        let weight = 1 + text.len() / Limits::ALIAS_TEXT;
        self.finish(head, body, end, NodeKind::Scalar { text, style }, weight, 0)
    }

    fn alias(&mut self) -> Result<()> {
        let Some(Token { tok: Tok::Alias(name), start, end, .. }) = self.scanner.take() else {
            return Ok(());
        };
        self.count(start)?;
        let Some(id) = self.anchors.get(name) else {
            return Err(syntax(start, Problem::AnchorUnknown));
        };
        let Some(Target { node, weight, height }) = &self.targets[*id] else {
            return Err(ReadError::Refused { pos: start.pos(), what: Refusal::AliasCycle });
        };
        let (target, weight, height) = (Arc::clone(node), *weight, *height);
        if self.stack.len() + height > self.depth {
            return Err(ReadError::TooDeep { pos: start.pos(), limit: self.depth });
        }
        self.budget(start, weight)?;
        let head = Head { start, tag: None, anchor: None };
        self.finish(head, start, end, NodeKind::Alias { name: name.to_owned(), target }, weight, height)
    }

    fn budget(&mut self, at: Mark, weight: usize) -> Result<()> {
        self.alias_nodes += weight;
        if self.alias_nodes > self.limits.alias_nodes {
            return Err(ReadError::AliasBudget { pos: at.pos(), limit: self.limits.alias_nodes });
        }
        Ok(())
    }

    /// Puts a finished node where it belongs: under a key, into a list, or at the root.
    fn finish(
        &mut self,
        head: Head<'a>,
        body: Mark,
        end: u32,
        kind: NodeKind,
        weight: usize,
        height: usize,
    ) -> Result<()> {
        let node = Node {
            pos: body.pos(),
            span: Span { start: head.start.at, body: body.at, end },
            tag: head.tag,
            anchor: head.anchor.map(|(name, _)| name.to_owned()),
            kind,
        };
        if let Some((_, id)) = head.anchor {
            // the copy counts like an alias: anchors around anchors would otherwise cost the square of their depth
            self.budget(body, weight)?;
            self.targets[id] = Some(Target { node: Arc::new(node.clone()), weight, height });
        }
        let Some(frame) = self.stack.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        frame.weight += weight;
        frame.height = frame.height.max(height + 1);
        // an absent value may stand before the end of what was last read
        frame.end = frame.end.max(end);
        match &mut frame.items {
            Items::List(elements) => elements.push(node),
            Items::Map { entries, key } => match key.take() {
                Some(key) => entries.push((key, node)),
                None => *key = Some(node),
            },
        }
        Ok(())
    }
}
