//! What must hold for any bytes at all. Every target takes a byte that chooses a minor, then a text; `merge` takes
//! patches after lines of `>>>`. A target panics where something does not hold.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

use std::sync::OnceLock;

use talos_config::{
    ChangeKind, Config, ConfigError, Leaf, LeafValue, Limits, Node, NodeKind, Options, Origin, Patch, Pos,
    SourceId, Tables, comments, diff, excerpt, read_stream,
};

/// Small, so that whatever passes them is found at once.
const LIMITS: Limits = Limits { bytes: 64 << 10, depth: 60, nodes: 4000, alias_nodes: 2000 };

/// What is planted in the place of every `@@`; [`redact`] looks for it.
const MARK: &str = "Zq7xWvK9jPmR";
const MARK64: &str = "WnE3eFd2SzlqUG1S";

fn options() -> Options {
    Options { opaque_tag: Some("!ref".to_owned()), limits: LIMITS }
}

/// The tables that the first byte chooses, and the rest.
fn chosen(data: &[u8]) -> Option<(&'static Tables, &[u8])> {
    static ALL: OnceLock<Vec<Tables>> = OnceLock::new();
    let all = ALL.get_or_init(|| Tables::minors().filter_map(Tables::embedded).collect());
    let (first, rest) = data.split_first()?;
    Some((&all[usize::from(*first) % all.len()], rest))
}

/// Reads any bytes: the same twice, within the limits, every span inside of the source and inside of the one around it.
pub fn reader(data: &[u8]) {
    let Some((tables, bytes)) = chosen(data) else { return };
    let read = || read_stream(bytes, tables.dialect(), &LIMITS);
    let _ = comments(bytes);
    let documents = match read() {
        Ok(documents) => documents,
        Err(error) => {
            assert_eq!(read(), Err(error.clone()), "the same bytes read differently");
            assert!(!error.to_string().is_empty());
            drop(excerpt(bytes, error.pos().unwrap_or_default()));
            return;
        }
    };
    assert_eq!(read().as_ref(), Ok(&documents), "the same bytes read differently");
    let utf16 = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
    let (mut end, mut nodes) = (0, 0);
    for document in &documents {
        assert_eq!(document.span.start, end, "documents lie side by side");
        end = document.span.end;
        let Some(root) = &document.root else { continue };
        let around = (document.span.start as u32, document.span.end as u32);
        nodes += tree(root, around, document.pos, 0);
        assert!(utf16 || document.span.end <= bytes.len());
        let _ = root.duplicate_key();
        assert!(root.same_tree(root));
    }
    assert!(utf16 || documents.is_empty() || end == bytes.len(), "the documents are the whole source");
    assert!(nodes <= LIMITS.nodes, "{nodes} nodes");
}

/// Checks a tree and counts its nodes.
fn tree(node: &Node, (start, end): (u32, u32), after: Pos, depth: usize) -> usize {
    let span = node.span;
    assert!(depth <= LIMITS.depth, "deeper than the limit");
    assert!(span.start <= span.body && span.body <= span.end, "{span:?}");
    assert!(start <= span.start && span.end <= end, "{span:?} outside of {start}..{end}");
    assert!(node.pos >= after, "{} before {after}", node.pos);
    let within = |part: &Node| tree(part, (span.start, span.end), node.pos, depth + 1);
    1 + match &node.kind {
        NodeKind::Mapping(entries) => entries.iter().map(|(key, value)| within(key) + within(value)).sum(),
        NodeKind::Sequence(elements) => elements.iter().map(within).sum(),
        _ => 0,
    }
}

/// Everything that can be seen of a configuration.
fn seen(config: &Config) -> (Option<Vec<u8>>, Vec<String>) {
    let leaf = |l: Leaf| {
        let value = match l.value {
            LeafValue::Text(text) | LeafValue::Opaque(text) => text,
            LeafValue::Empty => String::new(),
        };
        format!("{}{}={value} {:?}", l.document, l.pointer, l.origin)
    };
    (config.encode().ok(), config.leaves().map(leaf).collect())
}

fn load(tables: &Tables, bytes: &[u8]) -> Option<Config> {
    match Config::load(tables, bytes, SourceId(0), &options()) {
        Ok(config) => Some(config),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            None
        }
    }
}

/// Applies patches: each as a whole or not at all, the same on a copy, and copies stay what they were.
pub fn merge(data: &[u8]) {
    let Some((tables, bytes)) = chosen(data) else { return };
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mut parts = text.split("\n>>>\n");
    let Some(mut config) = parts.next().and_then(|text| load(tables, text.as_bytes())) else { return };
    for (text, number) in parts.zip(1..) {
        let Ok(patch) = Patch::load(tables, text.as_bytes(), SourceId(number), &options()) else { continue };
        let (mut copy, before) = (config.clone(), seen(&config));
        let done = config.apply(&patch);
        assert_eq!(seen(&copy), before, "a copy changed");
        let after = seen(&config);
        match &done {
            Ok(applied) => assert!(applied.changed || after.0 == before.0, "a silent change"),
            Err(error) => {
                assert!(!error.to_string().is_empty());
                assert_eq!(after, before, "a refused patch left a trace");
            }
        }
        assert!(after.1.len() <= before.1.len() + patch.leaves().count() + 64, "values from nowhere");
        let explained = copy.apply_explained(&patch).map(|(applied, _)| applied);
        assert_eq!((explained, seen(&copy)), (done, after), "the same patch does something else");
        assert_eq!(config.explain().len(), config.leaves().count());
    }
}

/// Talos prints some enumerations that are not set so that they do not load again: the error stands at a text that
/// nobody wrote. A null counts as written, but not as that text.
fn is_unset_enumeration(config: &Config, sources: &[&[u8]], printed: &str, error: &ConfigError) -> bool {
    let ConfigError::Value { path, pos, .. } = error else { return false };
    let from = |text: &str, pos: Pos| -> String {
        let line = text.lines().nth(pos.line as usize - 1).unwrap_or_default();
        line.chars().skip(pos.column as usize - 1).collect()
    };
    let written = from(printed, *pos);
    let stands = |origin: Origin| {
        let source =
            String::from_utf8_lossy(sources.get(origin.source.0 as usize).copied().unwrap_or_default());
        from(&source, origin.pos).trim_start_matches(['"', '\'']).starts_with(&written)
    };
    let same = LeafValue::Text(written.clone());
    !config.leaves().any(|leaf| leaf.pointer == *path && leaf.value == same && stands(leaf.origin))
}

/// Prints what was loaded: it reads as the same, prints the same, and is not much longer.
pub fn encode(data: &[u8]) {
    let Some((tables, bytes)) = chosen(data) else { return };
    let Some(config) = load(tables, bytes) else { return };
    let Ok(printed) = config.encode() else { return };
    // indentation, quotes and what nobody set; aliases are written out
    assert!(printed.len() <= 200 * (bytes.len() + 128 * LIMITS.alias_nodes), "{} bytes", printed.len());
    let wide = Options { limits: Limits { bytes: usize::MAX, ..Limits::default() }, ..options() };
    match Config::load(tables, &printed, SourceId(0), &wide) {
        Ok(again) => {
            assert_eq!(again.encode().as_deref(), Ok(&printed[..]), "printed again it differs");
            let changes = diff(&config, &again);
            assert!(changes.iter().all(|c| c.kind == ChangeKind::Added), "{changes:?}");
        }
        Err(error) => {
            let text = String::from_utf8_lossy(&printed);
            assert!(
                is_unset_enumeration(&config, &[bytes], &text, &error),
                "what is printed does not load: {error}"
            )
        }
    }
}

/// Replaces secrets: once is enough, and what is planted in redacted fields is nowhere to be seen.
pub fn redact(data: &[u8]) {
    let Some((tables, bytes)) = chosen(data) else { return };
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let text = text.replace("@@", MARK).replace("##", MARK64);
    let Some(config) = load(tables, text.as_bytes()) else { return };
    let hidden = config.redacted("REDACTED");
    assert_eq!(hidden.redacted("REDACTED").encode().ok(), hidden.encode().ok(), "once is not enough");
    assert_eq!(hidden.documents().collect::<Vec<_>>(), config.documents().collect::<Vec<_>>());
    let shown = |text: &str| text.contains(MARK) || text.contains(MARK64);
    for secret in config.redacted_paths() {
        let Some(now) = hidden.get(&path(&secret.document, &secret.pointer)) else { continue };
        if let Some(LeafValue::Text(text)) = now.value {
            assert!(!shown(&text) || secret.text != text, "{}{}", secret.document, secret.pointer);
        }
    }
    // whatever is still in the open stands in a field that nobody redacts
    for leaf in hidden.leaves() {
        let LeafValue::Text(text) = &leaf.value else { continue };
        let segments = talos_config::path::segments(&leaf.pointer);
        let secret = tables.is_redacted(&leaf.document.kind, &segments);
        // of a URL only the join token is secret
        let query = text.split('#').next().and_then(|url| url.split_once('?')).map_or("", |(_, query)| query);
        let open = match leaf.pointer == "/apiUrl" {
            true => query.split('&').any(|pair| pair.starts_with("jointoken=") && shown(pair)),
            false => shown(text),
        };
        assert!(!open || !secret, "{}{}", leaf.document, leaf.pointer);
    }
}

fn path(document: &talos_config::DocumentId, pointer: &str) -> talos_config::path::Path {
    talos_config::path::Path::of(document, pointer)
}
