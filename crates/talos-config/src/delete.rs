//! `$patch: delete`: taking the selectors out of a patch, and applying them.

use std::sync::Arc;

use crate::codec::text_of;
use crate::error::{ConfigError, MergeReason};
use crate::node::{Node, NodeKind, Pos};
use crate::path::pointer;
use crate::tables::{Body, Codec, Shape, Struct, Tables};
use crate::value::{Data, Val};

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
    let whole = Walk { found: &mut raw, path: Vec::new() }.node(node, &Parent::Document)?;
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
}

impl Walk<'_> {
    /// Whether the node is to be removed: it is a deletion, or deletions emptied it.
    fn node(&mut self, node: &mut Node, parent: &Parent) -> Result<bool, ConfigError> {
        let pos = node.pos;
        match &mut node.kind {
            NodeKind::Mapping(entries) => {
                let mut i = 0;
                while i < entries.len() {
                    if is_delete(&entries[i]) {
                        self.deletion(entries, pos, parent)?;
                        return Ok(true);
                    }
                    let key = entries[i].0.own_text().to_owned();
                    self.path.push(key);
                    let gone = self.node(&mut entries[i].1, &Parent::Mapping)?;
                    self.path.pop();
                    if gone {
                        entries.remove(i);
                        if entries.is_empty() {
                            return Ok(true);
                        }
                    } else {
                        i += 1;
                    }
                }
            }
            NodeKind::Sequence(elements) => {
                let mut i = 0;
                while i < elements.len() {
                    self.path.push(format!("[{i}]"));
                    let gone = self.node(&mut elements[i], &Parent::Sequence)?;
                    self.path.pop();
                    if gone {
                        elements.remove(i);
                        if elements.is_empty() {
                            return Ok(true);
                        }
                    } else {
                        i += 1;
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

/// Applies a selector below the root of its document.
pub(crate) fn apply(
    tables: &Tables,
    val: &mut Val,
    shape: &Shape,
    path: &[String],
    element: Option<&(String, String)>,
) -> Result<(), MergeReason> {
    let Some((first, rest)) = path.split_first() else { return Err(MergeReason::NothingToDelete) };
    let shape = tables.base(shape);
    match shape {
        Shape::Ptr(inner) => match &mut val.data {
            Data::Ptr(v) => apply(tables, Arc::make_mut(v), inner, path, element),
            _ => Err(MergeReason::NothingToDelete),
        },
        Shape::Map(inner) => in_map(tables, val, inner, path, element),
        Shape::Any => match &val.data {
            Data::Map(_) => in_map(tables, val, &Shape::Any, path, element),
            Data::List(_) => Err(MergeReason::CannotDelete),
            _ => Err(MergeReason::NothingToDelete),
        },
        Shape::List(inner) => {
            if !rest.is_empty() || !first.starts_with('[') {
                return Err(MergeReason::CannotDelete);
            }
            in_list(tables, val, inner, element)
        }
        Shape::Type(id) => match &tables.ty(*id).body {
            Body::Struct(s) => in_struct(tables, val, s, path, element),
            _ => Err(MergeReason::NothingToDelete),
        },
        _ => Err(MergeReason::NothingToDelete),
    }
}

fn in_struct(
    tables: &Tables,
    val: &mut Val,
    s: &Struct,
    path: &[String],
    element: Option<&(String, String)>,
) -> Result<(), MergeReason> {
    let Some((first, rest)) = path.split_first() else { return Err(MergeReason::NothingToDelete) };
    // a zero struct is searched too: deleting an unset field is no error, as long as the way to it exists
    let Some(fields) = val.fields_mut(s.fields.len()) else { return Err(MergeReason::NothingToDelete) };
    for (field, v) in s.fields.iter().zip(fields) {
        if field.unnamed {
            continue;
        }
        if !field.inline && &field.key == first {
            if rest.is_empty() {
                *v = Val::default();
                return Ok(());
            }
            return apply(tables, v, &field.shape, rest, element);
        }
        if field.inline {
            match apply(tables, v, &field.shape, path, element) {
                Err(MergeReason::NothingToDelete) => {}
                done => return done,
            }
        }
    }
    Err(MergeReason::NothingToDelete)
}

fn in_map(
    tables: &Tables,
    val: &mut Val,
    inner: &Shape,
    path: &[String],
    element: Option<&(String, String)>,
) -> Result<(), MergeReason> {
    let (Some((first, rest)), Data::Map(entries)) = (path.split_first(), &mut val.data) else {
        return Err(MergeReason::NothingToDelete);
    };
    let Some(i) = entries.iter().position(|(k, _)| **k == **first) else {
        return Err(MergeReason::NothingToDelete);
    };
    if rest.is_empty() {
        Arc::make_mut(entries).remove(i);
        return Ok(());
    }
    // a value of a map cannot be changed in Go unless it is a pointer, a map or free-form
    if tables.as_struct(tables.base(inner)).is_some() {
        return Err(MergeReason::CannotDelete);
    }
    apply(tables, &mut Arc::make_mut(entries)[i].1, inner, rest, element)
}

fn in_list(
    tables: &Tables,
    val: &mut Val,
    inner: &Shape,
    element: Option<&(String, String)>,
) -> Result<(), MergeReason> {
    let (Some((key, text)), Data::List(items)) = (element, &mut val.data) else {
        return Err(MergeReason::NothingToDelete);
    };
    let shape = match inner {
        Shape::Ptr(p) => p,
        other => other,
    };
    let Some(s) = tables.as_struct(shape) else { return Err(MergeReason::NothingToDelete) };
    let Some(index) = s.fields.iter().position(|f| !f.inline && !f.unnamed && &f.key == key) else {
        return Err(MergeReason::NothingToDelete);
    };
    for i in 0..items.len() {
        if let Data::Opaque(_) = items[i].data {
            return Err(MergeReason::OpaqueDependent);
        }
        let (Data::Struct(fields), zero) = (&items[i].pointee().data, Val::default()) else { continue };
        let field = fields.get(index).unwrap_or(&zero);
        if chosen_text(tables, field, &s.fields[index].shape)?.as_deref() == Some(text) {
            Arc::make_mut(items).remove(i);
            return Ok(());
        }
    }
    Err(MergeReason::NothingToDelete)
}

/// The text that Talos compares a field by: its string, or what its `String` method gives.
fn chosen_text(tables: &Tables, val: &Val, shape: &Shape) -> Result<Option<String>, MergeReason> {
    if let Data::Opaque(_) = val.data {
        return Err(MergeReason::OpaqueDependent);
    }
    if let Shape::Type(id) = shape {
        let ty = tables.ty(*id);
        if ty.stringer {
            return match &ty.body {
                Body::Leaf(Codec::FileMode) => Ok(Some(format!("0o{:o}", val.data.as_int()))),
                // the String of an unset URL crashes Talos
                Body::Leaf(Codec::Url) if !matches!(val.data, Data::Url(_)) => Err(MergeReason::CannotDelete),
                Body::Leaf(Codec::PortRange) => Err(MergeReason::CannotDelete),
                Body::Leaf(Codec::Addr | Codec::AddrPort | Codec::Prefix) if val.is_go_zero() => Ok(None),
                Body::Leaf(codec) => Ok(Some(text_of(codec, &val.data).into_owned())),
                _ => Err(MergeReason::CannotDelete),
            };
        }
    }
    match (tables.base(shape), &val.data) {
        (Shape::Text, Data::Text(t)) => Ok(Some(t.to_string())),
        (Shape::Text, _) => Ok(Some(String::new())),
        (Shape::Ptr(inner), _) if matches!(inner.as_ref(), Shape::Type(_)) => Err(MergeReason::CannotDelete),
        _ => Ok(None),
    }
}
