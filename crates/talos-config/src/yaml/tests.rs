use super::*;
use crate::node::{NodeKind, Style};

fn all(text: &str) -> Result<Vec<YamlDocument>, ReadError> {
    read_stream(text.as_bytes(), Dialect::default(), &Limits::default())
}

fn one(text: &str) -> Node {
    all(text).unwrap().remove(0).root.unwrap()
}

fn problem(text: &str) -> Problem {
    match all(text) {
        Err(ReadError::Syntax { problem, .. }) => problem,
        other => panic!("{text:?}: {other:?}"),
    }
}

#[test]
fn positions_tags_styles_and_spans() {
    let text = "a: !ref b\nc:\n  - 'd'\n  - !!binary &x \"e\"\n";
    let node = one(text);
    let a = node.get("a").unwrap();
    assert_eq!((a.tag.as_deref(), a.text(), a.pos), (Some("!ref"), Some("b"), Pos { line: 1, column: 9 }));
    assert_eq!(a.span.of(text), Some("!ref b"));
    let c = node.get("c").unwrap().elements().unwrap();
    assert_eq!(c[0].pos, Pos { line: 3, column: 5 });
    assert_eq!(c[1].tag.as_deref(), Some("tag:yaml.org,2002:binary"));
    assert_eq!(c[1].span.of(text), Some("!!binary &x \"e\""));
    assert_eq!(&text[c[1].span.body as usize..c[1].span.end as usize], "\"e\"");
    assert_eq!(node.get("c").unwrap().span.of(text), Some("- 'd'\n  - !!binary &x \"e\""));
    assert!(matches!(c[0].kind, NodeKind::Scalar { style: Style::SingleQuoted, .. }));
}

#[test]
fn spans_cover_the_stream() {
    let text = "# head\na: 1\n---\nb: 2\n...\n# tail\n---\nnull\n---\nc: 3";
    let docs = all(text).unwrap();
    assert_eq!(docs.len(), 4);
    assert_eq!(docs.iter().map(|d| &text[d.span.clone()]).collect::<String>(), text);
    assert!(docs[2].root.is_none());
    assert_eq!(docs[1].pos.line, 3);
    assert!(text[docs[3].span.clone()].starts_with("---\nc"));
}

#[test]
fn byte_order_marks_and_line_breaks() {
    let text = "\u{feff}a: 1\r\nb: 2\r\n";
    let docs = all(text).unwrap();
    assert_eq!(docs[0].span, 0..text.len());
    assert_eq!(docs[0].root.as_ref().unwrap().get("b").unwrap().text(), Some("2"));
    let inside = all("a: 1\n\u{feff}b: 2\n").unwrap_err();
    let pos = Pos { line: 2, column: 1 };
    assert_eq!(inside, ReadError::Refused { pos, what: Refusal::ByteOrderMark });
}

#[test]
fn encodings() {
    let read = |bytes: &[u8]| read_stream(bytes, Dialect::default(), &Limits::default());
    let utf16: Vec<u8> = "\u{feff}a: \u{1F600}é".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let docs = read(&utf16).unwrap();
    assert_eq!(docs[0].root.as_ref().unwrap().get("a").unwrap().text(), Some("\u{1F600}é"));
    assert_eq!(docs[0].span, 0.."a: \u{1F600}é".len());
    assert_eq!(read(&utf16[..utf16.len() - 1]), Err(ReadError::NotUtf16 { offset: utf16.len() - 2 }));
    assert_eq!(read(b"a: \xff"), Err(ReadError::NotUtf8 { offset: 3 }));
    let pos = Pos { line: 2, column: 4 };
    assert_eq!(read(b"a: 1\nb: \x01"), Err(ReadError::Character { pos, code: 1 }));
}

#[test]
fn the_dialects_differ_where_the_library_changed() {
    let root = |text: &str, dialect| {
        let docs = read_stream(text.as_bytes(), dialect, &Limits::default())?;
        Ok::<_, ReadError>(docs.into_iter().next().and_then(|d| d.root))
    };
    let [old, middle, new] = [Dialect::Rc3, Dialect::Rc4, Dialect::Rc5];
    assert!(root("{a:}", middle).unwrap().unwrap().get("a:").is_some());
    assert!(root("{a:}", new).unwrap().unwrap().get("a").is_some());
    assert!(root("[:a]", old).is_err() && root("[:a]", middle).is_ok());
    assert!(root("|\n...\n", middle).unwrap().unwrap().text() == Some(""));
    assert!(root("|\n...\n", new).unwrap().unwrap().text() == Some("...\n"));
    assert!(root("a\u{7f}", old).is_err() && root("a\u{7f}", middle).is_ok());
    assert!(root("! a", middle).unwrap().unwrap().tag.is_none());
    assert_eq!(root("! a", new).unwrap().unwrap().tag.as_deref(), Some("!"));
    let long = format!("{}: b", "a".repeat(1025));
    assert!(root(&long, old).is_err() && root(&long, middle).is_ok());
    assert!(root(&long[1..], old).is_ok());
}

#[test]
fn comments_and_anchors_are_found() {
    let text = "a: &x 1 # right\n# above\nb: *x\nc: 'no # comment'\nd: |#head\n  # text\n# end";
    let found = comments(text.as_bytes()).unwrap();
    let texts: Vec<_> = found.iter().map(|c| (c.pos.line, c.pos.column, c.text.as_str())).collect();
    assert_eq!(texts, [(1, 9, " right"), (2, 1, " above"), (5, 5, "head"), (7, 1, " end")]);
    let root = one(text);
    assert_eq!(anchors(&root)[0].anchor.as_deref(), Some("x"));
    assert_eq!(root.get("b").unwrap().text(), Some("1"));
}

#[test]
fn anchors_live_as_long_as_the_stream() {
    let docs = all("a: &x [1, 2]\n---\nb: *x\n").unwrap();
    let b = docs[1].root.as_ref().unwrap().get("b").unwrap();
    assert_eq!(b.elements().unwrap().len(), 2);
    assert_eq!(problem("a: *x\n"), Problem::AnchorUnknown);
    for text in ["&a [*a]", "&a {b: [*a]}", "&a\n- b: *a"] {
        assert!(matches!(all(text), Err(ReadError::Refused { what: Refusal::AliasCycle, .. })), "{text:?}");
    }
    // the inner anchor of the same name is complete
    assert!(all("&a [&a b, *a]").is_ok());
}

#[test]
fn duplicate_keys_are_found_by_text() {
    assert!(one("a: 1\nb: {c: 1, \"c\": 2}\n").duplicate_key().is_some());
    assert!(one("a: 1\nb: {a: 1}\n").duplicate_key().is_none());
}

#[test]
fn what_talos_refuses_is_refused_with_its_place() {
    for (text, line, column, expected) in [
        ("a: \"x\\/y\"", 1, 6, Problem::Escape),
        ("a: \"\\ud83d\\ude00\"", 1, 5, Problem::EscapeRange),
        ("-\ta", 1, 2, Problem::Tab),
        ("a:\n\tb: 1", 2, 1, Problem::Tab),
        ("a: b: c", 1, 5, Problem::Colon),
        ("a: 1\nb\nc: 2\n", 2, 1, Problem::NoColon),
        ("a: - b", 1, 4, Problem::Entry),
        ("a: 'b", 1, 4, Problem::Unclosed),
        ("a: @b", 1, 4, Problem::Start),
        ("a: [a, b", 1, 4, Problem::Bracket),
        ("a: {b: c,\n", 1, 4, Problem::Bracket),
        ("a: {b: [c, {d: e}\n---\nf: g\n", 1, 8, Problem::Bracket),
        ("a: {b\n", 1, 4, Problem::Bracket),
        ("a: {b: ", 1, 4, Problem::Bracket),
        ("[a b]: [c}", 1, 10, Problem::NextElement),
        ("a: 1\n...\nb: 2\n", 3, 1, Problem::DocumentStart),
        ("%YAML 1.2\n---\na: 1\n", 1, 1, Problem::OtherVersion),
        ("a: !e!b c\n", 1, 4, Problem::TagHandle),
    ] {
        for dialect in [Dialect::Rc3, Dialect::Rc4, Dialect::Rc5] {
            match read_stream(text.as_bytes(), dialect, &Limits::default()) {
                Err(ReadError::Syntax { pos, problem }) => {
                    assert_eq!((pos.line, pos.column, problem), (line, column, expected), "{text:?}");
                }
                other => panic!("{dialect:?} {text:?}: {other:?}"),
            }
        }
    }
}

#[test]
fn limits_hold() {
    let deep = |open: &str, count| all(&open.repeat(count));
    for open in ["[", "{a: ", "- ", "? ", "[{a: "] {
        assert!(matches!(deep(open, 100_000), Err(ReadError::TooDeep { limit: 200, .. })), "{open:?}");
    }
    let large = "a: b\n".repeat(1_000_000);
    assert!(matches!(all(&large), Err(ReadError::TooLarge { .. })));
    let many = "- a\n".repeat(500_000);
    assert!(matches!(all(&many), Err(ReadError::TooManyNodes { .. })));
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for i in 1..30 {
        let items = vec![format!("*a{}", i - 1); 10].join(", ");
        bomb.push_str(&format!("a{i}: &a{i} [{items}]\n"));
    }
    assert!(matches!(all(&bomb), Err(ReadError::AliasBudget { .. })));
    // aliases do not lead deeper than brackets may
    let mut tower = format!("- &a0 {}{}\n", "[".repeat(60), "]".repeat(60));
    for i in 1..4 {
        tower.push_str(&format!("- &a{i} {}*a{}{}\n", "[".repeat(60), i - 1, "]".repeat(60)));
    }
    assert!(matches!(all(&tower), Err(ReadError::TooDeep { limit: 200, .. })));
}

#[test]
fn the_deepest_tree_can_be_handled() {
    let limits = Limits { depth: usize::MAX, ..Limits::default() };
    let text = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    let docs = read_stream(text(Limits::DEEPEST).as_bytes(), Dialect::default(), &limits).unwrap();
    let mut count = 0;
    docs[0].root.clone().unwrap().walk(&mut |_| count += 1);
    assert_eq!(count, Limits::DEEPEST);
    let over = read_stream(text(Limits::DEEPEST + 1).as_bytes(), Dialect::default(), &limits);
    assert!(matches!(over, Err(ReadError::TooDeep { .. })));
}

#[test]
fn nothing_shows_a_value() {
    assert!(!format!("{:?}", one("token: hunter2\nlist: [hunter2]\n")).contains("hunter2"));
    let texts = [
        "a: hunter2: b",
        "a: 'hunter2",
        "hunter2\n---\n*hunter2",
        "[hunter2",
        "a: \"hunter2\\q\"",
        "!hunter2! a",
    ];
    for text in texts {
        let error = all(text).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{text:?}: {error}");
        let shown = excerpt(text.as_bytes(), error.pos().unwrap());
        assert!(!shown.contains("hunter2") || text.starts_with("hunter2:"), "{text:?}: {shown}");
    }
}

#[test]
fn an_excerpt_shows_structure_only() {
    let show = |text: &str, line, column| excerpt(text.as_bytes(), Pos { line, column });
    assert_eq!(show("a:\n  - key: hunter2 # why\n", 2, 10), "2 |   - key: …\n  |          ^");
    assert_eq!(show("a:\n  - key: hunter2 # why\n", 2, 20), "2 |   - key: …\n  |          ^");
    assert_eq!(show("a: |\n  hunter2\n", 2, 3), "2 |   …\n  |   ^");
    assert_eq!(show("a: |\r\n  hunter2 b: c\r\n", 2, 3), "2 |   …\n  |   ^");
    assert_eq!(show("\"hunter2\": b", 1, 1), "1 | …\n  | ^");
    assert_eq!(show("\ta: b", 1, 1), "1 | \ta: …\n  | ^");
    assert_eq!(show("key:", 1, 5), "1 | key:\n  |     ^");
    assert_eq!(show("# hunter2", 1, 1), "1 | …\n  | ^");
    assert_eq!(show("a: 1", 7, 1), "");
    assert_eq!(excerpt(b"a: \xff\n\xefb", Pos { line: 2, column: 1 }), "2 | …\n  | ^");
}

#[test]
fn spans_nest_also_around_absent_values() {
    fn check(node: &Node, start: u32, end: u32) {
        assert!(
            start <= node.span.start && node.span.end <= end,
            "{:?} outside of {start}..{end}",
            node.span
        );
        let within = |part: &Node| check(part, node.span.start, node.span.end);
        match &node.kind {
            NodeKind::Mapping(entries) => entries.iter().for_each(|(key, value)| {
                within(key);
                within(value);
            }),
            NodeKind::Sequence(elements) => elements.iter().for_each(within),
            _ => {}
        }
    }
    for text in ["\n#!? ? ..\n? ? ?,-\n#-", "? ? a\n#b\n", "a:\n  b:\n\n# c\n", "- - ?\n  # d"] {
        for dialect in [Dialect::Rc3, Dialect::Rc4, Dialect::Rc5] {
            let documents = read_stream(text.as_bytes(), dialect, &Limits::default()).unwrap();
            for document in &documents {
                let span = &document.span;
                document.root.iter().for_each(|root| check(root, span.start as u32, span.end as u32));
            }
        }
    }
}
