//! A reader for the little YAML that a talosconfig is: mappings, sequences and strings; anything cleverer is
//! refused.

use granit_parser::{Event, Options, Parser, ScalarStyle, Span, StrInput};
use zeroize::Zeroizing;

const SIZE_LIMIT: usize = 1 << 20;
const DEPTH_LIMIT: usize = 16;

/// Why a text is not such YAML; says where, never what stands there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum YamlError {
    /// Larger than any talosconfig.
    #[error("The text has more than 1 MiB; a talosconfig is smaller")]
    TooLarge,
    /// Not YAML.
    #[error("Not readable as YAML at line {line}, column {column}; correct the file there")]
    Syntax {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
    },
    /// Anchors, aliases, tags, a second document, deep nesting.
    #[error("Line {line}: {what} have no place in a talosconfig; write the value out")]
    Unsupported {
        /// Line, from 1.
        line: usize,
        /// What stands there.
        what: &'static str,
    },
    /// A key given twice.
    #[error("Line {line}: the key `{key}` stands twice in one mapping; remove one of them")]
    Duplicate {
        /// Line of the second, from 1.
        line: usize,
        /// The key.
        key: String,
    },
}

pub(crate) enum Value {
    Null,
    Scalar(Zeroizing<String>),
    Sequence(Vec<Value>),
    Mapping(Vec<(String, Value)>),
}

impl Value {
    /// The value of a key of a mapping; none if this is no mapping, the key is missing, or it is null.
    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        match self {
            Value::Mapping(entries) => {
                entries.iter().find(|(k, _)| k == key).map(|(_, v)| v).filter(|v| !matches!(v, Value::Null))
            }
            _ => None,
        }
    }
}

struct Reader<'a> {
    parser: Parser<'a, StrInput<'a>>,
    line: usize,
}

pub(crate) fn read(text: &str) -> Result<Value, YamlError> {
    if text.len() > SIZE_LIMIT {
        return Err(YamlError::TooLarge);
    }
    let mut options = Options::default();
    options.set_emit_comments(false);
    options.block_nesting_limit = DEPTH_LIMIT;
    options.flow_nesting_limit = DEPTH_LIMIT;
    let mut reader = Reader { parser: Parser::new_from_str_with_options(text, options), line: 1 };
    let mut root = Value::Null;
    let mut documents = 0;
    loop {
        match reader.next()? {
            Event::StreamEnd => return Ok(root),
            Event::DocumentStart(..) if documents == 1 => return Err(reader.unsupported("several documents")),
            Event::DocumentStart(..) => {
                documents += 1;
                let first = reader.next()?;
                root = reader.value(first, 0)?;
            }
            _ => {}
        }
    }
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<Event<'a>, YamlError> {
        match self.parser.next_event() {
            Some(Ok((event, span))) => {
                self.line = line(&span);
                Ok(event)
            }
            Some(Err(error)) => {
                Err(YamlError::Syntax { line: error.marker().line(), column: error.marker().col() + 1 })
            }
            None => Ok(Event::StreamEnd),
        }
    }

    fn unsupported(&self, what: &'static str) -> YamlError {
        YamlError::Unsupported { line: self.line, what }
    }

    fn value(&mut self, event: Event<'a>, depth: usize) -> Result<Value, YamlError> {
        if event.anchor_id().is_some_and(|id| id != 0) {
            return Err(self.unsupported("anchors and aliases"));
        }
        if event.tag().is_some() {
            return Err(self.unsupported("tags"));
        }
        if depth > DEPTH_LIMIT {
            return Err(self.unsupported("deeply nested values"));
        }
        match event {
            Event::Scalar(text, ScalarStyle::Plain, ..)
                if matches!(&*text, "" | "~" | "null" | "Null" | "NULL") =>
            {
                Ok(Value::Null)
            }
            Event::Scalar(text, ..) => Ok(Value::Scalar(Zeroizing::new(text.into_owned()))),
            Event::SequenceStart(..) => self.sequence(depth),
            Event::MappingStart(..) => self.mapping(depth),
            // an empty document, which has an end and nothing else
            Event::DocumentEnd => Ok(Value::Null),
            _ => Err(self.unsupported("anchors and aliases")),
        }
    }

    fn sequence(&mut self, depth: usize) -> Result<Value, YamlError> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                Event::SequenceEnd => return Ok(Value::Sequence(items)),
                event => items.push(self.value(event, depth + 1)?),
            }
        }
    }

    fn mapping(&mut self, depth: usize) -> Result<Value, YamlError> {
        let mut entries: Vec<(String, Value)> = Vec::new();
        loop {
            let key = match self.next()? {
                Event::MappingEnd => return Ok(Value::Mapping(entries)),
                Event::Scalar(text, _, 0, None) => text.into_owned(),
                _ => return Err(self.unsupported("keys that are not plain strings")),
            };
            if entries.iter().any(|(known, _)| *known == key) {
                return Err(YamlError::Duplicate { line: self.line, key: crate::text::short(&key) });
            }
            let event = self.next()?;
            let value = self.value(event, depth + 1)?;
            entries.push((key, value));
        }
    }
}

fn line(span: &Span) -> usize {
    span.start.line()
}
