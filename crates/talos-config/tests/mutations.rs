//! Damaged YAML, through the engine and through Talos' own library of every minor.

// helpers outside of test functions are test code too
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod support;

use bronzeward_testkit::oracle::Oracle;
use support::{Tally, case, sides};

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
fn damaged_texts_are_read_as_talos_reads_them() {
    let seed = 0x99_0DD5_1111;
    println!("seed {seed}");
    let inserts = [
        "\n", " ", "\t", ":", "-", "#", "'", "\"", "{", "}", "[", "]", ",", "&", "*", "!", "|", ">", "%",
        "@", "?", "\\", "  ", "\n  ", ": ", "- ", "...", "---\n", "~", "é", "\r", "!!str ", "<<: ", "\n\n",
        "? ",
    ];
    let base = SAMPLE.replace("  - {a}\n", "");
    for side in sides() {
        let mut state: u64 = seed;
        let mut oracle = Oracle::start_with(&side.library);
        let mut tally = Tally::default();
        for number in 0..3000 {
            let mut text: Vec<char> = base.chars().collect();
            for _ in 0..=next(&mut state) % 3 {
                let at = next(&mut state) % text.len();
                match next(&mut state) % 3 {
                    0 => drop(text.remove(at)),
                    1 => drop(text.splice(at..at, inserts[next(&mut state) % inserts.len()].chars())),
                    _ => drop(text.splice(at..=at, inserts[next(&mut state) % inserts.len()].chars())),
                }
            }
            let case = case(&text.into_iter().collect::<String>(), &[]);
            let verdict = side.compare(&mut oracle, &case);
            tally.add(&format!("damage {number}"), &case, verdict);
        }
        tally.finish(&format!("damaged texts, {}", side.tables.machinery()));
    }
}
