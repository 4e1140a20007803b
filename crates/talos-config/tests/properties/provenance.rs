//! Every value that is printed stands in one of the sources, where its origin says.

use std::collections::{HashMap, HashSet};

use bronzeward_testkit::generator::{Case, Manner};
use talos_config::{
    Config, FieldClass, Leaf, LeafValue, Limits, Node, NodeKind, Pos, SourceId, path, read_stream,
};

use crate::{Minor, minors};

/// The nodes of the sources of a case, by source and place.
type Places = HashMap<(SourceId, Pos), Vec<Option<String>>>;

fn places(minor: &Minor, case: &Case) -> Places {
    let mut found = Places::new();
    for (text, source) in std::iter::once(&case.config).chain(&case.patches).zip(0..) {
        let Ok(documents) = read_stream(text.as_bytes(), minor.tables.dialect(), &Limits::default()) else {
            continue;
        };
        for root in documents.iter().filter_map(|d| d.root.as_ref()) {
            root.walk(&mut |node| {
                let plain = node.resolved().tag.is_none();
                let text = node.text().filter(|_| plain).map(str::to_owned);
                found.entry((SourceId(source), node.pos)).or_default().push(text);
            });
        }
    }
    found
}

fn check(leaf: &Leaf, places: &Places, case: &Case) {
    let shown = || format!("{}{} {:?}\n{}", leaf.document, leaf.pointer, leaf.origin, case.config);
    for origin in [Some(leaf.origin), leaf.overrode].into_iter().flatten() {
        let text = match origin.source.0 as usize {
            0 => Some(&case.config),
            n => case.patches.get(n - 1),
        };
        let text = text.unwrap_or_else(|| panic!("no such source: {}", shown()));
        assert!(text.split(['\n', '\r']).count() >= origin.pos.line as usize, "no such line: {}", shown());
        assert!(places.contains_key(&(origin.source, origin.pos)), "nothing stands there: {}", shown());
    }
    // a text is what was written there, but for the blanks that Talos cuts from manifests
    if let (FieldClass::Text, LeafValue::Text(text)) = (leaf.class, &leaf.value) {
        let written = &places[&(leaf.origin.source, leaf.origin.pos)];
        let cut = ['\t', '\n', '\u{b}', '\u{c}', '\r'];
        let null = |w: &str| text.is_empty() && matches!(w, "~" | "null" | "Null" | "NULL");
        let is = |w: &String| w == text || w.trim_start_matches(cut) == text || null(w);
        let same = |w: &Option<String>| w.as_ref().is_none_or(is);
        assert!(written.iter().any(same), "another text stands there: {}", shown());
    }
}

/// The pointers of all scalars of a printed document, with their texts.
fn printed(node: &Node, at: &str, out: &mut Vec<(String, String)>) {
    match &node.kind {
        NodeKind::Mapping(entries) => {
            for (key, value) in entries {
                let key = key.text().unwrap_or_default().to_owned();
                printed(value, &format!("{at}{}", path::pointer(&[key])), out);
            }
        }
        NodeKind::Sequence(items) => {
            for (i, item) in items.iter().enumerate() {
                printed(item, &format!("{at}/{i}"), out);
            }
        }
        _ => out.push((at.to_owned(), node.text().unwrap_or_default().to_owned())),
    }
}

/// Scalars that are printed without a leaf: they stand for fields that nobody set.
fn unset(config: &Config, minor: &Minor) -> Vec<(String, String)> {
    let bytes = config.encode().unwrap();
    let read = read_stream(&bytes, minor.tables.dialect(), &Limits::default()).unwrap();
    let mut without = Vec::new();
    for (document, id) in read.iter().zip(config.documents()) {
        let known: HashSet<String> =
            config.leaves().filter(|leaf| leaf.document == id).map(|leaf| leaf.pointer).collect();
        let mut all = Vec::new();
        printed(document.root.as_ref().unwrap(), "", &mut all);
        without.extend(all.into_iter().filter(|(pointer, _)| !known.contains(pointer)));
    }
    without
}

#[test]
fn every_printed_value_stands_where_its_origin_says() {
    for minor in minors() {
        let (mut values, mut gaps) = (0, HashSet::new());
        for case in minor.cases(Manner::ALL) {
            let Some((mut config, patches)) = minor.loaded(&case) else { continue };
            for patch in &patches {
                let _ = config.apply(patch);
            }
            let places = places(&minor, &case);
            for leaf in config.leaves() {
                check(&leaf, &places, &case);
                values += 1;
            }
            if config.encode().is_ok() {
                gaps.extend(unset(&config, &minor).into_iter().map(|(_, text)| text));
            }
        }
        assert!(values > 10_000, "only {values} values");
        // what Talos prints for fields that nobody set
        let zeros = ["", "0", "0o0", "0s", "false", "null"];
        let types = minor.json["types"].as_object().unwrap();
        let of_enumerations: HashSet<&str> = types
            .values()
            .flat_map(|ty| [&ty["zero"], &ty["enum"][ty["zeroIs"].as_u64().unwrap_or(0) as usize]])
            .filter_map(serde_json::Value::as_str)
            .collect();
        let is_zero = |text: &str| zeros.contains(&text) || of_enumerations.contains(text);
        let others: Vec<_> = gaps.iter().filter(|text| !is_zero(text)).collect();
        assert!(others.is_empty(), "{}: printed without an origin: {others:?}", minor.tables.minor());
    }
}
