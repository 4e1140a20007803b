//! Fragments and bases: files of Talos documents that may begin with one document of our own.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talos_config::{Dialect, Limits, Node, NodeKind, Pos, YamlDocument, read_stream};

use crate::ApiVersion;
use crate::de::from_node;
use crate::finding::{Finding, TOP, codes};
use crate::name::Name;

/// The document with which a fragment may begin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct FragmentHeader {
    /// The format.
    pub api_version: ApiVersion,
    /// Always `Fragment`.
    pub kind: FragmentKind,
    /// What the fragment is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The drift that the fragment adopts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adopts: Option<Adopts>,
}

/// The kind of [`FragmentHeader`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FragmentKind {
    /// The one value.
    Fragment,
}

/// Which drift a fragment adopts; inert once that record is closed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Adopts {
    /// The machine.
    pub machine: Name,
    /// The sequence number of its open drift record.
    pub drift: u64,
    /// The keyed digest of the meaning that was seen.
    pub meaning: String,
}

/// The document with which a base begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Base {
    /// The format.
    pub api_version: ApiVersion,
    /// Always `Base`.
    pub kind: BaseKind,
    /// The name, equal to the file's.
    pub name: Name,
    /// From which machine it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<Imported>,
    /// Places whose values the operator named as secrets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<Mark>,
    /// Places that the operator looked at and found to hold no secret.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cleared: Vec<Mark>,
}

/// The kind of [`Base`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum BaseKind {
    /// The one value.
    Base,
}

/// From which machine a base was read, and what was seen there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Imported {
    /// The machine.
    pub machine: Name,
    /// The drift record that this import adopts; null for the first one.
    pub drift: Option<u64>,
    /// The keyed digest of the exact bytes.
    pub bytes: String,
    /// The keyed digest of their meaning.
    pub meaning: String,
}

/// A place in a base: a document and a pointer into it (RFC 6901).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Mark {
    /// `v1alpha1`, `Kind` or `Kind/name`.
    pub document: String,
    /// The pointer.
    pub path: String,
}

/// A file of Talos documents: its own header, and the text of the rest.
#[derive(Clone, PartialEq, Eq)]
pub struct Source<H> {
    /// The file, relative to the repository.
    pub path: String,
    /// The document of our own, if the file begins with one.
    pub header: Option<H>,
    /// The Talos documents; the header is replaced by empty lines, so that positions are the file's.
    pub body: Vec<u8>,
}

impl<H> std::fmt::Debug for Source<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Is this document one of ours?
pub fn is_own(node: &Node) -> bool {
    node.get("apiVersion").and_then(Node::text).is_some_and(|text| text.starts_with("bronzeward.dev/"))
}

/// Splits a file into the document of our own and the rest.
pub(crate) fn split<H: serde::de::DeserializeOwned>(path: &str, bytes: &[u8]) -> Result<Source<H>, Finding> {
    let documents = documents(path, bytes)?;
    let own: Vec<&YamlDocument> =
        documents.iter().filter(|doc| doc.root.as_ref().is_some_and(is_own)).collect();
    let Some(first) = documents.first().filter(|_| !own.is_empty()) else {
        return Ok(Source { path: path.to_owned(), header: None, body: bytes.to_vec() });
    };
    if own.len() > 1 || !std::ptr::eq(own[0], first) {
        let pos = own.last().map_or(TOP, |doc| doc.pos);
        let help = "only the first document of a file may be Bronzeward's";
        return Err(Finding::error(path, pos, codes::WRONG_VALUE, "A Bronzeward document stands here", help));
    }
    let node = first.root.as_ref().expect("BUG: an own document has a root");
    let header = from_node(node).map_err(|misfit| misfit_finding(path, misfit))?;
    let end = documents.get(1).map_or(bytes.len(), |next| next.span.start);
    let (skipped, rest) = bytes.split_at(end);
    let mut body: Vec<u8> = skipped.iter().copied().filter(|b| *b == b'\n').collect();
    body.extend(rest);
    Ok(Source { path: path.to_owned(), header: Some(header), body })
}

/// The documents of a file, which is no template.
fn documents(path: &str, bytes: &[u8]) -> Result<Vec<YamlDocument>, Finding> {
    let action = |pos: Pos| {
        let message = "The file is a template, and nothing is templated";
        let help =
            "write the values, or a reference to a secret; a value for many machines stands in a fragment";
        Finding::error(path, pos, codes::TEMPLATE, message, help)
    };
    let documents = read_stream(bytes, Dialect::default(), &Limits::default()).map_err(|err| {
        let near = err.pos().and_then(|pos| action_near(bytes, pos));
        near.map_or_else(|| unreadable(path, &err), action)
    })?;
    match documents.iter().filter_map(|document| document.root.as_ref()).find_map(action_in) {
        Some(pos) => Err(action(pos)),
        None => Ok(documents),
    }
}

/// A template action that reads as YAML: `{{ x }}` is a mapping with a mapping as its key. Texts may hold what they
/// like, so manifests and scripts with templates of their own pass.
fn action_in(root: &Node) -> Option<Pos> {
    let mut found = None;
    root.walk(&mut |node| {
        if let NodeKind::Mapping(entries) = &node.kind
            && entries.iter().any(|(key, _)| matches!(key.kind, NodeKind::Mapping(_)))
        {
            found.get_or_insert(node.pos);
        }
    });
    found
}

/// A template action that made a file unreadable: where a value could begin, on the line of the error or the one before.
fn action_near(bytes: &[u8], error: Pos) -> Option<Pos> {
    let text = String::from_utf8_lossy(bytes);
    let near = text
        .lines()
        .zip(1..)
        .filter(|(_, number)| (error.line.saturating_sub(1)..=error.line).contains(number));
    for (line, number) in near {
        let open = ["{{", "{%"].iter().filter_map(|open| line.find(open)).min();
        let begins = |at: &usize| {
            let before = line[..*at].trim_end();
            before.is_empty() || before.ends_with([':', '-', ','])
        };
        if let Some(at) = open.filter(begins) {
            return Some(Pos { line: number, column: line[..at].chars().count() as u32 + 1 });
        }
    }
    None
}

pub(crate) fn unreadable(path: &str, err: &talos_config::ReadError) -> Finding {
    let help = "correct the YAML; `bronzeward check` reads the file as Talos would";
    Finding::error(path, err.pos().unwrap_or(TOP), codes::UNREADABLE, err.to_string(), help)
}

pub(crate) fn misfit_finding(path: &str, misfit: crate::de::Misfit) -> Finding {
    let help = "see the file's schema under schema/";
    Finding::error(path, misfit.pos.unwrap_or(TOP), misfit.code, misfit.message, help)
}

/// Reads a file that holds one document of our own and nothing else.
///
/// # Errors
/// What does not fit, with its place.
pub fn read_own<T: serde::de::DeserializeOwned>(path: &str, bytes: &[u8]) -> Result<T, Finding> {
    let documents = documents(path, bytes)?;
    let mut full = documents.iter().filter_map(|document| Some((document.pos, document.root.as_ref()?)));
    let (first, second) = (full.next(), full.next());
    let (Some((_, node)), None) = (first, second) else {
        let message = "One document must stand here";
        let pos = second.map_or(TOP, |(pos, _)| pos);
        let help = "see the file's schema under schema/";
        return Err(Finding::error(path, pos, codes::WRONG_VALUE, message, help));
    };
    from_node(node).map_err(|misfit| misfit_finding(path, misfit))
}
