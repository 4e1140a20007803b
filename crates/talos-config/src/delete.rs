//! `$patch: delete`: taking the selectors out of a patch, and applying them.

mod apply;

use std::collections::HashSet;

use crate::error::ConfigError;
use crate::node::{Node, NodeKind, Pos};
use crate::path::pointer;

/// One deletion, as a patch asks for it.
#[derive(Clone)]
pub(crate) struct Selector {
    /// Keys from the document's root; a last `[n]` means an element that `element` chooses.
    pub path: Vec<String>,
    /// Field and text that choose a list element.
    pub element: Option<(String, String)>,
    pub api: String,
    pub kind: String,
    pub name: Option<String>,
    pub pos: Pos,
}

impl Selector {
    /// Whether both speak of one document.
    pub fn same_document(&self, other: &Selector) -> bool {
        (&self.api, &self.kind, &self.name) == (&other.api, &other.kind, &other.name)
    }
}

enum Parent {
    Document,
    Mapping,
    Sequence,
}

/// Takes every deletion out of a patch document. Nothing of the document is left if `root` becomes `None`.
pub(crate) fn extract(root: &mut Option<Node>) -> Result<Vec<Selector>, ConfigError> {
    let mut found = Vec::new();
    let Some(node) = root else { return Ok(found) };
    let mut raw = Vec::new();
    let twice = twice_named(node);
    let mut walk = Walk { found: &mut raw, path: Vec::new(), edited: HashSet::new() };
    let whole = walk.node(node, &Parent::Document)?;
    let edited = walk.edited;
    if !raw.is_empty() {
        let refuse = |pos, what: &str, way_out: &str| ConfigError::NotHandled {
            pos,
            path: "this place".to_owned(),
            what: what.to_owned(),
            way_out: way_out.to_owned(),
        };
        if let Some(pos) = twice {
            return Err(refuse(
                pos,
                "a document that is named twice beside a '$patch: delete'",
                "name it once",
            ));
        }
        if let Some(pos) = alias_of(node, &edited) {
            let what = "an alias of what holds a '$patch: delete'";
            return Err(refuse(pos, what, "write out what the alias stands for"));
        }
    }
    let identity = |key: &str| node.own_text_of(key).to_owned();
    let (api, kind, name) = (identity("apiVersion"), identity("kind"), identity("name"));
    for found_one in raw {
        let Raw { path, element, pos, parent_is_document } = found_one;
        let refuse = |reason| ConfigError::Delete { pos, path: pointer(&path), reason };
        if parent_is_document && api.is_empty() && kind.is_empty() && both_stand(node) {
            let what = "the deletion of a document without apiVersion and kind".to_owned();
            let way_out = "name the document that is to go".to_owned();
            return Err(ConfigError::NotHandled { pos, path: "its top".to_owned(), what, way_out });
        }
        if parent_is_document && (api.is_empty() || kind.is_empty()) {
            return Err(refuse("a whole document is deleted by apiVersion, kind and name; add them"));
        }
        if api.is_empty() != kind.is_empty() {
            return Err(refuse("the document has only one of apiVersion and kind; add the other"));
        }
        found.push(Selector {
            path,
            element,
            api: api.clone(),
            kind: if kind.is_empty() { "v1alpha1".to_owned() } else { kind.clone() },
            name: Some(name.clone()).filter(|n| !n.is_empty()),
            pos,
        });
    }
    if whole || is_only_identity(node) {
        *root = None;
    }
    Ok(found)
}

/// The second of two keys that say which document this is, if one stands twice.
fn twice_named(node: &Node) -> Option<Pos> {
    let NodeKind::Mapping(entries) = &node.kind else { return None };
    ["apiVersion", "kind", "name"].iter().find_map(|wanted| {
        let mut keys = entries.iter().filter(|(key, _)| key.own_text() == *wanted);
        keys.nth(1).map(|(key, _)| key.pos)
    })
}

/// An alias of one of the anchors. Talos takes deletions out of the anchored value itself, and so out of every alias.
fn alias_of(node: &Node, anchors: &HashSet<String>) -> Option<Pos> {
    let mut found = None;
    if !anchors.is_empty() {
        node.walk(&mut |node| {
            if let NodeKind::Alias { name, .. } = &node.kind
                && anchors.contains(name)
            {
                found = found.or(Some(node.pos));
            }
        });
    }
    found
}

/// Whether apiVersion and kind are there, whatever they are.
fn both_stand(node: &Node) -> bool {
    let NodeKind::Mapping(entries) = &node.kind else { return false };
    let stands = |key: &str| entries.iter().any(|(k, _)| k.own_text() == key);
    stands("apiVersion") && stands("kind")
}

/// Talos skips a patch document in which nothing is left but these scalars. `apiVersion` is not among them.
fn is_only_identity(node: &Node) -> bool {
    let NodeKind::Mapping(entries) = &node.kind else { return false };
    entries.iter().all(|(k, v)| {
        let scalars = matches!((&k.kind, &v.kind), (NodeKind::Scalar { .. }, NodeKind::Scalar { .. }));
        scalars && matches!(k.own_text(), "version" | "kind" | "name")
    })
}

struct Raw {
    path: Vec<String>,
    element: Option<(String, String)>,
    pos: Pos,
    parent_is_document: bool,
}

struct Walk<'a> {
    found: &'a mut Vec<Raw>,
    path: Vec<String>,
    /// Anchors of the values out of which something was taken.
    edited: HashSet<String>,
}

impl Walk<'_> {
    /// Whether the node is to be removed: it is a deletion, or deletions emptied it.
    fn node(&mut self, node: &mut Node, parent: &Parent) -> Result<bool, ConfigError> {
        let before = self.found.len();
        let gone = self.taken(node, parent)?;
        // a deletion itself stays whole
        let own =
            usize::from(matches!(&node.kind, NodeKind::Mapping(entries) if entries.iter().any(is_delete)));
        if self.found.len() > before + own {
            self.edited.extend(node.anchor.clone());
        }
        Ok(gone)
    }

    fn taken(&mut self, node: &mut Node, parent: &Parent) -> Result<bool, ConfigError> {
        let pos = node.pos;
        match &mut node.kind {
            NodeKind::Mapping(entries) => {
                let mut left = std::mem::take(entries).into_iter();
                while let Some(mut entry) = left.next() {
                    if is_delete(&entry) {
                        entries.extend(left);
                        self.deletion(entries, pos, parent)?;
                        // what is deleted is still looked at for the document's identity
                        entries.push(entry);
                        return Ok(true);
                    }
                    self.path.push(entry.0.own_text().to_owned());
                    let gone = self.node(&mut entry.1, &Parent::Mapping)?;
                    self.path.pop();
                    if !gone {
                        entries.push(entry);
                    } else if entries.is_empty() && left.len() == 0 {
                        return Ok(true);
                    }
                }
            }
            NodeKind::Sequence(elements) => {
                let mut left = std::mem::take(elements).into_iter();
                while let Some(mut element) = left.next() {
                    self.path.push(format!("[{}]", elements.len()));
                    let gone = self.node(&mut element, &Parent::Sequence)?;
                    self.path.pop();
                    if !gone {
                        elements.push(element);
                    } else if elements.is_empty() && left.len() == 0 {
                        return Ok(true);
                    }
                }
            }
            _ => {}
        }
        Ok(false)
    }

    fn deletion(&mut self, entries: &[(Node, Node)], pos: Pos, parent: &Parent) -> Result<(), ConfigError> {
        let refuse = |reason| ConfigError::Delete { pos, path: pointer(&self.path), reason };
        let element = match parent {
            Parent::Sequence => {
                let Some((key, value)) = entries.iter().find(|e| !is_delete(e)) else {
                    return Err(refuse("no field chooses the element; put one before '$patch: delete'"));
                };
                Some((key.own_text().to_owned(), value.own_text().to_owned()))
            }
            _ if self.path.iter().any(|p| p.starts_with('[') || p.is_empty()) => {
                return Err(refuse(
                    "a field inside a list element cannot be deleted; delete and rewrite the element",
                ));
            }
            _ => None,
        };
        let parent_is_document = matches!(parent, Parent::Document);
        self.found.push(Raw { path: self.path.clone(), element, pos, parent_is_document });
        Ok(())
    }
}

fn is_delete((key, value): &(Node, Node)) -> bool {
    key.own_text() == "$patch" && matches!(&value.kind, NodeKind::Scalar { text, .. } if text == "delete")
}
