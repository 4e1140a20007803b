use std::time::Instant;

use super::*;
use crate::node::{NodeKind, Style};

fn one(text: &str) -> Node {
    read_stream(text.as_bytes(), Dialect::default(), &Limits::default()).unwrap().remove(0).root.unwrap()
}

#[test]
fn positions_tags_and_styles() {
    let node = one("a: !ref b\nc:\n  - 'd'\n  - !!binary \"e\"\n");
    let a = node.get("a").unwrap();
    assert_eq!((a.tag.as_deref(), a.text(), a.pos), (Some("!ref"), Some("b"), Pos { line: 1, column: 9 }));
    let c = node.get("c").unwrap().elements().unwrap();
    assert_eq!(c[0].pos, Pos { line: 3, column: 5 });
    assert_eq!(c[1].tag.as_deref(), Some("tag:yaml.org,2002:binary"));
    assert!(matches!(c[0].kind, NodeKind::Scalar { style: Style::SingleQuoted, .. }));
}

#[test]
fn spans_cover_the_stream() {
    let text = "# head\na: 1\n---\nb: 2\n...\n# tail\n---\nnull\n---\nc: 3";
    let docs = read_stream(text.as_bytes(), Dialect::default(), &Limits::default()).unwrap();
    assert_eq!(docs.len(), 4);
    assert_eq!(docs.iter().map(|d| &text[d.span.clone()]).collect::<String>(), text);
    assert!(docs[2].root.is_none());
    assert_eq!(docs[1].pos.line, 3);
    assert!(text[docs[3].span.clone()].starts_with("---\nc"));
}

#[test]
fn byte_order_mark_and_crlf() {
    let text = "\u{feff}a: 1\r\nb: 2\r\n";
    let docs = read_stream(text.as_bytes(), Dialect::default(), &Limits::default()).unwrap();
    assert_eq!(docs[0].span, 0..text.len());
    assert_eq!(docs[0].root.as_ref().unwrap().get("b").unwrap().text(), Some("2"));
}

#[test]
fn comments_and_anchors_are_found() {
    let text = "a: &x 1 # right\n# above\nb: *x\n";
    let found = comments(text.as_bytes()).unwrap();
    assert_eq!(found.iter().map(|c| c.text.as_str()).collect::<Vec<_>>(), [" right", " above"]);
    let root = one(text);
    assert_eq!(anchors(&root)[0].anchor.as_deref(), Some("x"));
    assert_eq!(root.get("b").unwrap().text(), Some("1"));
}

#[test]
fn duplicate_keys_are_found_by_text() {
    assert!(one("a: 1\nb: {c: 1, \"c\": 2}\n").duplicate_key().is_some());
    assert!(one("a: 1\nb: {a: 1}\n").duplicate_key().is_none());
}

#[test]
fn what_talos_refuses_is_refused_in_every_dialect() {
    for dialect in [Dialect::Rc3, Dialect::Rc4, Dialect::Rc5] {
        for text in [
            "a: \"x\\/y\"",
            "-\ta",
            "a:\n\tb: 1",
            "%YAML 1.2\n---\na: 1\n",
            "a: *x\n",
            "&a [*a]",
            "a: [b\n",
            "a: 'b\n",
            "a: b: c\n",
            "- a\nb\n",
        ] {
            assert!(
                read_stream(text.as_bytes(), dialect, &Limits::default()).is_err(),
                "{dialect:?} {text:?}"
            );
        }
    }
}

#[test]
fn limits_refuse_quickly() {
    let start = Instant::now();
    let deep = "[".repeat(100_000);
    assert!(read_stream(deep.as_bytes(), Dialect::default(), &Limits::default()).is_err());
    let large = "a: b\n".repeat(1_000_000);
    assert!(matches!(
        read_stream(large.as_bytes(), Dialect::default(), &Limits::default()),
        Err(ReadError::TooLarge { .. })
    ));
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for i in 1..30 {
        let items = vec![format!("*a{}", i - 1); 10].join(", ");
        bomb.push_str(&format!("a{i}: &a{i} [{items}]\n"));
    }
    assert!(matches!(
        read_stream(bomb.as_bytes(), Dialect::default(), &Limits::default()),
        Err(ReadError::AliasBudget { .. })
    ));
    assert!(start.elapsed().as_millis() < 1000, "{:?}", start.elapsed());
}

#[test]
fn debug_shows_no_value() {
    assert!(!format!("{:?}", one("token: hunter2\nlist: [hunter2]\n")).contains("hunter2"));
}
