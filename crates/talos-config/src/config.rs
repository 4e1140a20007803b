//! Configurations and patches: streams of documents, loaded, merged, encoded.

use std::collections::{HashMap, HashSet};

use crate::access::{Leaf, at, leaf, leaves_of};
use crate::decode::Decoder;
use crate::delete::{self, Selector};
use crate::encode::{Damage, Encoder};
use crate::error::{ConfigError, EncodeError, MergeError, MergeReason, origin};
use crate::header::{Header, LEGACY, no_duplicates};
use crate::merge::{Merger, Surprise};
use crate::node::{Node, NodeKind, Pos, Span, Style};
use crate::path::{DocumentId, pointer};
use crate::tables::{PatchOrder, Shape, Tables};
use crate::value::{Data, Origin, SourceId, Val};
use crate::walk::visit_written;
use crate::yaml::{Limits, YamlDocument, read_stream};

/// How a stream is loaded.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The tag of references, for example `!bwref`. A scalar with this tag may stand as a scalar or mapping
    /// value or as a list element; its text is kept and it counts as a value that is not zero.
    pub opaque_tag: Option<String>,
    /// How much the stream may hold.
    pub limits: Limits,
}

/// A document: its kind and its typed value.
#[derive(Clone, Debug)]
pub(crate) struct Doc {
    /// Index into the tables' kinds.
    pub kind: usize,
    pub name: Option<String>,
    pub root: Val,
    pub pos: Pos,
    pub source: SourceId,
}

/// A machine configuration: documents, typed by the tables of one Talos minor.
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) tables: Tables,
    pub(crate) tag: String,
    /// The `v1alpha1` document first, if there is one, then the others as they came.
    pub(crate) docs: Vec<Doc>,
}

/// A strategic merge patch.
#[derive(Clone, Debug)]
pub struct Patch {
    tables: Tables,
    steps: Vec<Step>,
}

#[derive(Clone)]
pub(crate) enum Step {
    Delete(Selector, SourceId),
    Merge(Doc),
}

impl std::fmt::Debug for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Step::Delete(s, _) => write!(f, "Delete({})", pointer(&s.path)),
            Step::Merge(doc) => doc.fmt(f),
        }
    }
}

/// What applying a patch did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Applied {
    /// Whether any value differs from before.
    pub changed: bool,
}

impl Doc {
    pub fn shape<'t>(&self, tables: &'t Tables) -> &'t Shape {
        &tables.0.kinds[self.kind].root
    }

    pub fn id(&self, tables: &Tables) -> DocumentId {
        let kind = tables.0.kinds[self.kind].kind.clone();
        let api = if kind == LEGACY { String::new() } else { tables.0.kinds[self.kind].api.clone() };
        DocumentId { api, kind, name: self.name.clone() }
    }

    pub fn api<'t>(&self, tables: &'t Tables) -> &'t str {
        let kind = &tables.0.kinds[self.kind];
        if kind.kind == LEGACY { "" } else { &kind.api }
    }

    pub fn identity(&self) -> (usize, Option<String>) {
        (self.kind, self.name.clone())
    }

    fn is(&self, kind: usize, name: Option<&str>) -> bool {
        self.kind == kind && self.name.as_deref() == name
    }
}

struct Loader<'a> {
    tables: &'a Tables,
    source: SourceId,
    options: &'a Options,
    /// Nothing if the same document may come twice.
    seen: Option<HashSet<(String, String, String)>>,
}

impl Loader<'_> {
    /// The document of a root, or nothing if it is null.
    fn document(&mut self, document: &YamlDocument) -> Result<Option<Doc>, ConfigError> {
        let Some(root) = &document.root else { return Ok(None) };
        let pos = document.pos;
        if !matches!(root.kind, NodeKind::Mapping(_)) || self.is_opaque(root) {
            let found = if self.is_opaque(root) { "reference" } else { root.kind_name() };
            return Err(ConfigError::NotAMapping { pos: root.pos, found });
        }
        no_duplicates(root)?;
        let header = Header { tables: self.tables, opaque: self.options.opaque_tag.as_deref() };
        let kind = header.kind(root, pos)?;
        self.check_duplicate(root, pos)?;
        let info = &self.tables.0.kinds[kind];
        let mut decoder = Decoder::new(self.tables, self.source, self.options.opaque_tag.as_deref());
        let value = decoder.value(&info.root, root)?;
        let name = match &info.name {
            Some(key) => {
                header.identity(root, key)?;
                match at(self.tables, &value, &info.root, std::slice::from_ref(key)).map(|(v, _)| &v.data) {
                    Some(Data::Text(name)) => Some(name.to_string()),
                    _ => Some(String::new()),
                }
            }
            None => None,
        };
        let doc = Doc { kind, name, root: value, pos: root.pos, source: self.source };
        for path in &info.links {
            // what excludes what must be plain to see
            if let Some((Val { data: Data::Opaque(_), origin, .. }, _)) =
                at(self.tables, &doc.root, doc.shape(self.tables), path)
            {
                let pos = origin.map_or(pos, |origin| origin.pos);
                let what = "the name of a link".to_owned();
                return Err(ConfigError::OpaquePlace { pos, path: pointer(path), what });
            }
        }
        Ok(Some(doc))
    }

    fn is_opaque(&self, node: &Node) -> bool {
        node.tag.is_some() && node.tag == self.options.opaque_tag
    }

    /// Talos compares apiVersion, kind and `name` as they are written, whether or not the kind has a name.
    fn check_duplicate(&mut self, root: &Node, pos: Pos) -> Result<(), ConfigError> {
        let text = |key: &str| root.own_text_of(key).to_owned();
        let kind = Some(text("kind")).filter(|k| !k.is_empty()).unwrap_or_else(|| LEGACY.to_owned());
        let id = (text("apiVersion"), kind, text("name"));
        let Some(seen) = &mut self.seen else { return Ok(()) };
        if seen.contains(&id) {
            let id = if id.2.is_empty() { id.1 } else { format!("{}/{}", id.1, id.2) };
            return Err(ConfigError::DuplicateDocument { pos, id });
        }
        seen.insert(id);
        Ok(())
    }

    fn read(&self, bytes: &[u8]) -> Result<Vec<YamlDocument>, ConfigError> {
        Ok(read_stream(bytes, self.tables.dialect(), &self.options.limits)?)
    }
}

/// The first two documents that cannot stand together: the same one twice, or kinds that exclude each other.
fn clash<'d>(tables: &Tables, docs: impl Iterator<Item = &'d Doc>) -> Option<(&'d Doc, &'d Doc)> {
    let mut seen: HashMap<(&str, Option<&str>), &Doc> = HashMap::new();
    let mut excluded: HashMap<(&str, Option<&str>), &Doc> = HashMap::new();
    let mut claimed: HashMap<&str, &Doc> = HashMap::new();
    for doc in docs {
        let kind = &tables.0.kinds[doc.kind];
        let id = (kind.kind.as_str(), doc.name.as_deref());
        let mut others = kind.conflicts.iter().map(|k| (k.as_str(), doc.name.as_deref()));
        let found = seen.get(&id).or_else(|| excluded.get(&id)).copied();
        if let Some(first) = found.or_else(|| others.find_map(|other| seen.get(&other).copied())) {
            return Some((first, doc));
        }
        seen.insert(id, doc);
        excluded.extend(kind.conflicts.iter().map(|k| ((k.as_str(), doc.name.as_deref()), doc)));
        for path in &kind.links {
            let link = match at(tables, &doc.root, doc.shape(tables), path).map(|(v, _)| &v.data) {
                Some(Data::Text(name)) => name,
                _ => "",
            };
            if let Some(first) = claimed.insert(link, doc) {
                return Some((first, doc));
            }
        }
    }
    None
}

fn check_clash<'d>(tables: &Tables, docs: impl Iterator<Item = &'d Doc>) -> Result<(), ConfigError> {
    let Some((first, second)) = clash(tables, docs) else { return Ok(()) };
    let (pos, second_id) = (second.pos, second.id(tables).to_string());
    if std::ptr::eq(first, second) {
        let expected = "another name than the link's own".to_owned();
        return Err(ConfigError::Value { pos, path: format!("the other link of {second_id}"), expected });
    }
    if first.identity() == second.identity() {
        return Err(ConfigError::DuplicateDocument { pos, id: second_id });
    }
    Err(ConfigError::Conflict { pos, first: first.id(tables).to_string(), second: second_id })
}

impl Config {
    /// Loads a configuration strictly: unknown keys, wrong types, duplicate keys and duplicate documents are
    /// errors, as they are in Talos.
    ///
    /// # Errors
    /// [`ConfigError`] with the place in the source.
    pub fn load(
        tables: &Tables,
        bytes: &[u8],
        source: SourceId,
        options: &Options,
    ) -> Result<Config, ConfigError> {
        let mut loader = Loader { tables, source, options, seen: Some(HashSet::new()) };
        let mut docs = Vec::new();
        for document in loader.read(bytes)? {
            docs.extend(loader.document(&document)?);
        }
        if docs.is_empty() {
            return Err(ConfigError::NoDocuments);
        }
        check_clash(tables, docs.iter())?;
        let tag = options.opaque_tag.clone().unwrap_or_default();
        let mut config = Config { tables: tables.clone(), tag, docs };
        config.legacy_first();
        Ok(config)
    }

    fn legacy_first(&mut self) {
        let tables = self.tables.clone();
        self.docs.sort_by_key(|d| tables.0.kinds[d.kind].kind != LEGACY);
    }

    /// The tables by which the configuration is typed.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// The identities of the documents, in the order in which they are encoded.
    pub fn documents(&self) -> impl Iterator<Item = DocumentId> + '_ {
        self.docs.iter().map(|d| d.id(&self.tables))
    }

    /// Applies a patch. After an error the configuration is as it was.
    ///
    /// # Errors
    /// [`MergeError`] where Talos refuses or crashes, and where the result would depend on a reference's value.
    pub fn apply(&mut self, patch: &Patch) -> Result<Applied, MergeError> {
        self.transact(patch, None)
    }

    /// As [`Config::apply`], and gives what people do not expect of it, in the order in which it happened, with
    /// the document of each.
    pub(crate) fn apply_watched(
        &mut self,
        patch: &Patch,
    ) -> Result<(Applied, Vec<(DocumentId, Surprise)>), MergeError> {
        let mut surprises = Vec::new();
        Ok((self.transact(patch, Some(&mut surprises))?, surprises))
    }

    fn transact(&mut self, patch: &Patch, watch: Watch<'_>) -> Result<Applied, MergeError> {
        let before = self.docs.clone();
        if let Err(error) = self.steps(patch, watch) {
            self.docs = before;
            return Err(error);
        }
        let same = before.len() == self.docs.len()
            && before.iter().zip(&self.docs).all(|(a, b)| a.kind == b.kind && a.root == b.root);
        Ok(Applied { changed: !same })
    }

    fn steps(&mut self, patch: &Patch, mut watch: Watch<'_>) -> Result<(), MergeError> {
        let mut appended = Vec::new();
        let mut steps = patch.steps.as_slice();
        while let [step, rest @ ..] = steps {
            match step {
                Step::Delete(..) => steps = &steps[self.delete(steps, &appended)?..],
                Step::Merge(doc) => {
                    steps = rest;
                    let before = self.docs.len();
                    self.merge(doc, watch.as_deref_mut())?;
                    if self.docs.len() > before && !self.tables.0.switches.patch_repeats {
                        appended.push(doc.identity());
                    }
                }
            }
        }
        self.legacy_first();
        let Some((first, second)) = clash(&self.tables, self.docs.iter()) else { return Ok(()) };
        let reason = match first.identity() == second.identity() {
            true if std::ptr::eq(first, second) => MergeReason::OneLink,
            true => MergeReason::DuplicateDocument,
            false => MergeReason::Conflict,
        };
        Err(MergeError {
            document: second.id(&self.tables).to_string(),
            path: String::new(),
            origin: Some(origin(second.source, second.pos)),
            reason,
        })
    }

    fn merge(&mut self, right: &Doc, watch: Watch<'_>) -> Result<(), MergeError> {
        let Some(left) = self.docs.iter_mut().find(|d| d.is(right.kind, right.name.as_deref())) else {
            self.docs.push(right.clone());
            return Ok(());
        };
        let shape = right.shape(&self.tables);
        let merger = Merger::new(&self.tables, watch.is_some());
        let merged = merger.documents(&mut left.root, &right.root, shape).map_err(|f| MergeError {
            document: right.id(&self.tables).to_string(),
            path: pointer(&f.path),
            origin: f.origin.or(Some(origin(right.source, right.pos))),
            reason: f.reason,
        })?;
        if let Some(watch) = watch {
            watch.extend(merged.into_iter().map(|s| (right.id(&self.tables), s)));
        }
        Ok(())
    }

    /// Encodes the configuration as Talos does with comments off, byte for byte.
    ///
    /// # Errors
    /// [`EncodeError`] where Talos' own output would not read as the same configuration.
    pub fn encode(&self) -> Result<Vec<u8>, EncodeError> {
        let mut out = String::with_capacity(8 << 10);
        for doc in &self.docs {
            if !out.is_empty() {
                out.push_str("---\n");
            }
            out = self.encode_document(doc, out)?;
        }
        Ok(out.into_bytes())
    }

    fn encode_document(&self, doc: &Doc, out: String) -> Result<String, EncodeError> {
        let damage = |d: Damage| {
            let (reason, path) = d.parts();
            let origin = self.written_at(doc, &path);
            let path = pointer(&reason.shown_path(path));
            EncodeError { document: doc.id(&self.tables).to_string(), path, origin, reason }
        };
        let start = out.len();
        let shape = doc.shape(&self.tables);
        let mut encoder = Encoder::new(&self.tables, &self.tag, out);
        encoder.document(&doc.root, shape).map_err(damage)?;
        let (out, risks) = encoder.finish();
        match self.misread(doc, &out[start..], &risks) {
            Some(path) => Err(damage(Damage::Lossy(path.clone()))),
            None => Ok(out),
        }
    }

    /// Where what stands at a place was written, or else what holds it.
    fn written_at(&self, doc: &Doc, path: &[String]) -> Option<Origin> {
        let shape = doc.shape(&self.tables);
        let at = |length: usize| at(&self.tables, &doc.root, shape, &path[..length])?.0.origin;
        (0..=path.len()).rev().find_map(at).or(Some(origin(doc.source, doc.pos)))
    }

    /// The first of the places whose text reads otherwise than it was meant, if the document is read again.
    fn misread<'p>(&self, doc: &Doc, text: &str, places: &'p [Vec<String>]) -> Option<&'p Vec<String>> {
        let first = places.first()?;
        let options = Options {
            opaque_tag: Some(self.tag.clone()).filter(|tag| !tag.is_empty()),
            limits: Limits { bytes: usize::MAX, ..Limits::default() },
        };
        let Ok(again) = Config::load(&self.tables, text.as_bytes(), SourceId(0), &options) else {
            return Some(first);
        };
        let [read] = again.docs.as_slice() else { return Some(first) };
        let shape = doc.shape(&self.tables);
        let value = |doc: &'_ Doc, path: &[String]| {
            at(&self.tables, &doc.root, shape, path).map(|(val, _)| val.pointee().data.clone())
        };
        // a text that reads as it was meant leaves the reader where it was before it
        places.iter().find(|path| value(doc, path) != value(read, path))
    }
}

/// Where surprises are gathered, if anybody wants to know.
type Watch<'w> = Option<&'w mut Vec<(DocumentId, Surprise)>>;

impl Patch {
    /// Loads a strategic merge patch, with its `$patch: delete` statements.
    ///
    /// # Errors
    /// [`ConfigError`]; JSON patches and empty patches are refused by name.
    pub fn load(
        tables: &Tables,
        bytes: &[u8],
        source: SourceId,
        options: &Options,
    ) -> Result<Patch, ConfigError> {
        let switches = &tables.0.switches;
        // without this check nothing else is checked among the documents of a patch either
        let seen = if switches.patch_repeats { None } else { Some(HashSet::new()) };
        let mut loader = Loader { tables, source, options, seen };
        let mut loaded: Vec<Step> = Vec::new();
        for mut document in loader.read(bytes)? {
            if let Some(NodeKind::Sequence(_)) = document.root.as_ref().map(|r| &r.kind) {
                let pos = document.root.as_ref().map_or(document.pos, |r| r.pos);
                return Err(ConfigError::Json6902 { pos });
            }
            let deletes = delete::extract(&mut document.root)?;
            loaded.extend(deletes.into_iter().map(|d| Step::Delete(d, source)));
            loaded.extend(loader.document(&document)?.map(Step::Merge));
        }
        if loaded.is_empty() {
            return Err(ConfigError::EmptyPatch);
        }
        let docs = loaded.iter().filter_map(|s| match s {
            Step::Merge(doc) => Some(doc),
            Step::Delete(..) => None,
        });
        if !switches.patch_repeats {
            check_clash(tables, docs)?;
        }
        let legacy = tables.kind(LEGACY).map(|(i, _)| i);
        loaded.sort_by_key(|s| match s {
            Step::Delete(d, _) if d.kind == LEGACY => 0,
            Step::Merge(doc) if Some(doc.kind) == legacy && switches.patch_order == PatchOrder::Legacy => 1,
            _ => 2,
        });
        Ok(Patch { tables: tables.clone(), steps: loaded })
    }

    /// Every value that the patch sets, with its place in the patch. Compared by origin with
    /// [`Config::leaves`] after all patches, it shows which values did not reach the result. Deletions set
    /// nothing.
    pub fn leaves(&self) -> impl Iterator<Item = Leaf> + '_ {
        let docs = self.steps.iter().filter_map(|s| match s {
            Step::Merge(doc) => Some(doc),
            Step::Delete(..) => None,
        });
        docs.flat_map(|doc| leaves_of(&self.tables, doc))
    }

    /// Every value that the patch writes and that is not a zero, whether or not it would be printed.
    pub(crate) fn written(&self) -> Vec<Leaf> {
        let mut written = Vec::new();
        for step in &self.steps {
            let Step::Merge(doc) = step else { continue };
            visit_written(&self.tables, &doc.root, doc.shape(&self.tables), &mut |path, shape, val| {
                if let Some(origin) = val.origin {
                    written.push(leaf(&self.tables, doc, path, shape, val, origin));
                }
            });
        }
        written
    }
}

/// A node that stands for a text, as if it had been written there.
pub(crate) fn text_node(text: &str, style: Style) -> Node {
    Node {
        pos: Pos::default(),
        span: Span::default(),
        tag: None,
        anchor: None,
        kind: NodeKind::Scalar { text: text.to_owned(), style },
    }
}
