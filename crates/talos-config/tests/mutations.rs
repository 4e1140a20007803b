//! The reader against Talos' own on damaged YAML: a text may be refused here that Talos takes, but never read
//! in another sense.

// helpers outside of test functions are test code too
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod support;

use std::collections::BTreeMap;

use bronzeward_testkit::oracle::Oracle;
use support::{Outcome, compare};

const SAMPLE: &str = r#"version: v1alpha1 # comment
machine:
  type: worker
  token: "a b: \"c\""
  certSANs:
  - 10.0.0.1
  - 'it''s'
  - &anchor plain text
  - *anchor
  - {a}
  nodeLabels: {a: b, "c/d": 'e', f: , g: h i}
  kubelet:
    extraConfig:
      list: [1, two, {three: 3}, [4]]
      nested:
        - a: 1
          b: true
        -
          c: ~
        - - x
          - y
      folded: >-
        some
        text

        more
  files:
    - path: /etc/x
      permissions: 0o644
      content: |
        line one
          line two

        # no comment
      op: create
---
apiVersion: v1alpha1
kind: HostnameConfig
hostname: host # trailing
"#;

fn next(state: &mut u64) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 8) as usize
}

#[test]
fn damaged_texts_are_never_read_in_another_sense() {
    let seed = 0x99_0DD5_1111;
    println!("seed {seed}");
    let mut state: u64 = seed;
    let mut oracle = Oracle::start();
    let inserts = [
        "\n", " ", "\t", ":", "-", "#", "'", "\"", "{", "}", "[", "]", ",", "&", "*", "!", "|", ">", "%",
        "@", "?", "\\", "  ", "\n  ", ": ", "- ", "...", "---\n", "~", "é", "\r", "!!str ", "<<: ", "\n\n",
        "? ",
    ];
    let base = SAMPLE.replace("  - {a}\n", "");
    let (mut counts, mut different) = (BTreeMap::<&str, usize>::new(), Vec::new());
    for _ in 0..4000 {
        let mut text: Vec<char> = base.chars().collect();
        for _ in 0..=next(&mut state) % 3 {
            let at = next(&mut state) % text.len();
            match next(&mut state) % 3 {
                0 => drop(text.remove(at)),
                1 => drop(text.splice(at..at, inserts[next(&mut state) % inserts.len()].chars())),
                _ => drop(text.splice(at..=at, inserts[next(&mut state) % inserts.len()].chars())),
            }
        }
        let text: String = text.into_iter().collect();
        let word = match compare(&mut oracle, &text, &[]) {
            Outcome::Equal => "equal",
            Outcome::BothRefuse => "refused by both",
            Outcome::RefusedByName(_) => "refused by name here",
            Outcome::Different(report) if report.contains("=== ours\nREFUSED") => {
                "refused here, taken by Talos"
            }
            Outcome::Different(report) => {
                let kind = if report.contains("=== Talos\nREFUSED") {
                    "taken here, refused by Talos"
                } else {
                    "another sense"
                };
                different.push(format!("{kind}\n{report}"));
                kind
            }
        };
        *counts.entry(word).or_default() += 1;
    }
    println!("{counts:?}");
    for report in different.iter().take(30) {
        println!("{report}");
    }
    assert!(different.is_empty(), "{counts:?}");
}
