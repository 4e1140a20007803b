//! The reader on the documents of `reader/trees.txt`, with the answers of go-yaml beside them: no Go is needed.
//!
//! With `BRONZEWARD_UPDATE=1` the answers are asked for again.

// helpers outside of test functions are test code too
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod reader;

use std::collections::BTreeMap;

use bronzeward_testkit::yamltree::YamlTree;
use reader::{CANDIDATES, Outcome, compare};
use talos_config::Limits;

/// Stands between the nodes of an answer.
const NEXT: &str = " ␤ ";

fn path() -> String {
    format!("{}/tests/reader/trees.txt", env!("CARGO_MANIFEST_DIR"))
}

/// The bytes of a document in quotes.
fn unescape(line: &str) -> Vec<u8> {
    let inner = line.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap();
    let mut out = Vec::new();
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.extend(c.encode_utf8(&mut [0; 4]).bytes());
            continue;
        }
        match chars.next().unwrap() {
            'n' => out.push(b'\n'),
            'r' => out.push(b'\r'),
            't' => out.push(b'\t'),
            'x' => {
                let digits: String = chars.by_ref().take(2).collect();
                out.push(u8::from_str_radix(&digits, 16).unwrap());
            }
            'u' => {
                let digits: String = chars.by_ref().skip(1).take_while(|c| *c != '}').collect();
                let c = char::from_u32(u32::from_str_radix(&digits, 16).unwrap()).unwrap();
                out.extend(c.encode_utf8(&mut [0; 4]).bytes());
            }
            c => out.push(u8::try_from(c).unwrap()),
        }
    }
    out
}

/// An answer on one line.
fn flat(answer: &str) -> String {
    match answer.strip_prefix('+') {
        Some(nodes) => format!("+{}", nodes.trim_end_matches('\n').replace('\n', NEXT)),
        None => "-".to_owned(),
    }
}

/// The file with fresh answers.
fn updated(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with(' ')).collect();
    let documents: Vec<Vec<u8>> = lines.iter().filter(|l| l.starts_with('"')).map(|l| unescape(l)).collect();
    let answers = CANDIDATES.map(|(candidate, _)| (candidate, YamlTree::start(candidate).read(&documents)));
    let (mut out, mut next) = (String::new(), 0);
    for line in lines {
        out.extend([line, "\n"]);
        if line.starts_with('"') {
            let mut kinds: Vec<(String, String)> = Vec::new();
            for (candidate, answers) in &answers {
                let answer = flat(&answers[next]);
                match kinds.iter_mut().find(|(known, _)| *known == answer) {
                    Some((_, candidates)) => candidates.push_str(&format!(" {candidate}")),
                    None => kinds.push((answer, candidate.to_string())),
                }
            }
            next += 1;
            for (answer, candidates) in kinds {
                out.push_str(&format!(" {candidates}: {answer}\n"));
            }
        }
    }
    out
}

#[test]
fn recorded_documents_read_as_talos_reads_them() {
    let mut text = std::fs::read_to_string(path()).unwrap();
    if std::env::var_os("BRONZEWARD_UPDATE").is_some() {
        text = updated(&text);
        std::fs::write(path(), &text).unwrap();
    }
    let (mut document, mut counts) = ("", BTreeMap::<String, usize>::new());
    let mut wrong = Vec::new();
    for line in text.lines() {
        if line.starts_with('"') {
            document = line;
        }
        let Some((candidates, answer)) = line.strip_prefix(' ').and_then(|line| line.split_once(": ")) else {
            continue;
        };
        let answer = answer.replace(NEXT, "\n");
        let answer = if answer.len() > 1 { format!("{answer}\n") } else { answer };
        for candidate in candidates.split(' ') {
            let (_, dialect) = CANDIDATES.into_iter().find(|(c, _)| c.to_string() == candidate).unwrap();
            let outcome = compare(&unescape(document), dialect, &Limits::default(), &answer);
            match outcome {
                Outcome::Equal => *counts.entry("equal".to_owned()).or_default() += 1,
                Outcome::BothRefuse => *counts.entry("refused by both".to_owned()).or_default() += 1,
                Outcome::Named(class) => *counts.entry(format!("by name: {class}")).or_default() += 1,
                other => wrong.push(format!("rc.{candidate} {document}\n{other:?}\ntheirs: {answer}")),
            }
        }
    }
    println!("{counts:?}");
    assert!(counts["equal"] > 1000 && counts["refused by both"] > 500, "the file was read: {counts:?}");
    assert!(wrong.is_empty(), "{} of the answers differ:\n{}", wrong.len(), wrong.join("\n"));
}
