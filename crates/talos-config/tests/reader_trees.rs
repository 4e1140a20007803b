//! The reader against go-yaml itself, on documents from a seed and on every YAML file of the Go module cache: kinds,
//! tags, styles, values, places, anchors and spans of all nodes.
//!
//! `BRONZEWARD_READER_CASES` is the number of documents for each version of the library, `BRONZEWARD_SEED` the seed.

// helpers outside of test functions are test code too
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod reader;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use bronzeward_testkit::yamltree::YamlTree;
use reader::generate::{Random, document};
use reader::{CANDIDATES, Outcome, compare};
use talos_config::Limits;

fn number(name: &str, default: u64) -> u64 {
    let text = std::env::var_os(name).and_then(|value| value.into_string().ok());
    text.map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} must be a number")))
}

/// Counts outcomes, and keeps what must not be.
#[derive(Default)]
struct Tally {
    equal: usize,
    both_refuse: usize,
    named: BTreeMap<&'static str, usize>,
    wrong: Vec<String>,
    kinds: BTreeMap<&'static str, usize>,
}

impl Tally {
    fn add(&mut self, name: &str, document: &[u8], outcome: Outcome, answer: &str) {
        let kind = match &outcome {
            Outcome::Equal => return self.equal += 1,
            Outcome::BothRefuse => return self.both_refuse += 1,
            Outcome::Named(class) => return *self.named.entry(class).or_default() += 1,
            Outcome::WronglyAccepted => "wrongly accepted",
            Outcome::WronglyRefused(_) => "wrongly refused",
            Outcome::OtherReading(_) => "another reading",
        };
        *self.kinds.entry(kind).or_default() += 1;
        let shown = String::from_utf8_lossy(&document[..document.len().min(400)]).into_owned();
        let ours = match outcome {
            Outcome::OtherReading(ours) => ours,
            Outcome::WronglyRefused(error) => error.to_string(),
            _ => String::new(),
        };
        let cut = |text: &str| text.chars().take(600).collect::<String>();
        let text = format!("{kind}: {name}: {shown:?}\nours: {}\ntheirs: {}\n", cut(&ours), cut(answer));
        self.wrong.push(text);
    }

    fn finish(mut self, what: &str) {
        println!(
            "{what}: {} equal, {} refused by both, refused by name {:?}, wrong {:?}",
            self.equal, self.both_refuse, self.named, self.kinds
        );
        self.wrong.sort_by_key(String::len);
        for text in self.wrong.iter().take(30) {
            println!("{text}");
        }
        let named: usize = self.named.values().sum();
        let all = self.equal + self.both_refuse + named;
        assert!(named <= all / 100, "{what}: refusals by name are to be rare: {named} of {all}");
        assert!(self.wrong.is_empty(), "{what}: {} documents differ", self.wrong.len());
    }
}

fn files() -> Vec<(PathBuf, Vec<u8>)> {
    let output = Command::new("go").args(["env", "GOMODCACHE"]).output().unwrap();
    let root = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim());
    let (mut folders, mut found) = (vec![root.clone()], Vec::new());
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
            if kind.is_dir() && path != root.join("cache") {
                folders.push(path);
            } else if kind.is_file() && path.extension().is_some_and(|e| e == "yaml" || e == "yml") {
                found.extend(std::fs::read(&path).ok().map(|bytes| (path, bytes)));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn generated_documents_read_as_talos_reads_them() {
    let seed = number("BRONZEWARD_SEED", 20);
    let count = number("BRONZEWARD_READER_CASES", 6_000) as usize;
    println!("BRONZEWARD_SEED={seed} BRONZEWARD_READER_CASES={count}");
    let corpus: Vec<Vec<u8>> =
        files().into_iter().map(|(_, bytes)| bytes).filter(|b| !b.is_empty() && b.len() < 20_000).collect();
    let mut random = Random::new(seed);
    let documents: Vec<Vec<u8>> = (0..count).map(|_| document(&mut random, &corpus)).collect();
    for (candidate, dialect) in CANDIDATES {
        let mut tally = Tally::default();
        for (i, answer) in YamlTree::start(candidate).read(&documents).iter().enumerate() {
            let outcome = compare(&documents[i], dialect, &Limits::default(), answer);
            tally.add(&i.to_string(), &documents[i], outcome, answer);
        }
        assert!(tally.equal > count / 10 || count < 100, "too few documents are YAML: {}", tally.equal);
        tally.finish(&format!("rc.{candidate}"));
    }
}

#[test]
fn real_files_read_as_talos_reads_them() {
    let files = files();
    assert!(files.len() > 100, "the Go module cache holds {} YAML files", files.len());
    let limits = Limits { bytes: usize::MAX, nodes: usize::MAX, ..Limits::default() };
    let documents: Vec<&[u8]> = files.iter().map(|(_, bytes)| bytes.as_slice()).collect();
    for (candidate, dialect) in CANDIDATES {
        let mut tally = Tally::default();
        for (i, answer) in YamlTree::start(candidate).read(&documents).iter().enumerate() {
            let outcome = compare(documents[i], dialect, &limits, answer);
            tally.add(&files[i].0.display().to_string(), documents[i], outcome, answer);
        }
        tally.finish(&format!("rc.{candidate}, {} files", files.len()));
    }
}

/// Every sequence of up to four fragments (`BRONZEWARD_READER_LENGTH`), 300,000 documents: to be run by hand, in
/// release.
#[test]
#[ignore = "takes minutes"]
fn every_short_document_reads_as_talos_reads_it() {
    const FRAGMENTS: &[&str] = &[
        "a", "b: ", ": ", ":", " ", "  ", "\t", "\n", "- ", "-", "? ", "[", "]", "{", "}", ",", "&a ", "*a",
        "!t ", "! ", "|\n", ">-\n", "'", "\"", "#", "\n---\n", "...\n", "%", "\r", "\u{85}", "é",
    ];
    let length = number("BRONZEWARD_READER_LENGTH", 4);
    let mut dumpers: Vec<_> = CANDIDATES.iter().map(|(candidate, _)| YamlTree::start(*candidate)).collect();
    let mut tallies: Vec<Tally> = CANDIDATES.iter().map(|_| Tally::default()).collect();
    let mut last: Vec<String> = vec![String::new()];
    for _ in 0..length {
        last = last.iter().flat_map(|text| FRAGMENTS.iter().map(move |f| format!("{text}{f}"))).collect();
        for batch in last.chunks(50_000) {
            for (i, (_, dialect)) in CANDIDATES.into_iter().enumerate() {
                for (text, answer) in batch.iter().zip(dumpers[i].read(batch)) {
                    let outcome = compare(text.as_bytes(), dialect, &Limits::default(), &answer);
                    tallies[i].add("", text.as_bytes(), outcome, &answer);
                }
            }
        }
    }
    for (tally, (candidate, _)) in tallies.into_iter().zip(CANDIDATES) {
        tally.finish(&format!("rc.{candidate}, every document of up to {length} fragments"));
    }
}
