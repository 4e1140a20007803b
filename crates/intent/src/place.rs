//! Where something stands in a file of ours: looked up again when there is a finding, so that types stay plain.

use talos_config::{Dialect, Limits, Node, Pos, read_stream};

use crate::files::Files;
use crate::finding::TOP;

/// The place of what a path of keys (and, in a list, of element texts) names: the value of the last key when it is a
/// scalar, else the key, else the list's element. As deep as it goes; the top of the file when nothing is there.
pub(crate) fn place(files: &Files, path: &str, steps: &[&str]) -> Pos {
    let documents =
        files.get(path).and_then(|bytes| read_stream(bytes, Dialect::default(), &Limits::default()).ok());
    let root = documents.iter().flatten().find_map(|document| document.root.as_ref());
    let (mut found, mut node) = (TOP, root);
    for step in steps {
        let Some((pos, next)) = node.and_then(|node| one_step(node, step)) else { break };
        (found, node) = (pos, Some(next));
    }
    found
}

fn one_step<'a>(node: &'a Node, step: &str) -> Option<(Pos, &'a Node)> {
    if let Some(elements) = node.elements() {
        let element = elements.iter().find(|element| element.text() == Some(step))?;
        return Some((element.pos, element));
    }
    let (key, value) = node.entries()?.iter().find(|(key, _)| key.text() == Some(step))?;
    let pos = if value.text().is_some() && !value.is_null() { value.pos } else { key.pos };
    Some((pos, value))
}
