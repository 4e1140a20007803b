//! Random documents and patches of every kind, made from the tables, compared with Talos' own library.

// helpers outside of test functions are test code too
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod support;

use bronzeward_testkit::oracle::Oracle;
use serde_json::Value;
use support::{Outcome, Tally, compare};
use talos_config::{Config, Options, Patch, Resolved, SourceId, Tables};

/// A small generator of pseudo-random numbers (xorshift), so that a seed is all it takes to repeat a run.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}

struct Gen {
    rng: Rng,
    tables: Value,
    /// How many percent of leaves get a value that does not fit.
    wrong: usize,
    /// How many percent of texts become a numbered place for a reference, `@@n@@`.
    references: usize,
    places: usize,
}

const TEXTS: &[&str] = &[
    "abc",
    "\"a b\"",
    "yes",
    "0o644",
    "1.0",
    "\"\"",
    "\"x: y\"",
    "~",
    "\"multi\\nline\\n\"",
    "'it''s'",
    "\"tab\\there\"",
    "\"12:30\"",
    "2024-01-02",
    "\"#h\"",
    "ünï",
    "\"😀\"",
    "\"-\"",
    "\"- a\"",
    "\"no newline\\nhere\"",
    "\"trailing \"",
    "a#b",
    "\"1_000\"",
    "0x1F",
    "\"*a\"",
    "\"%a\"",
    "\"a\\n\\n\"",
    "\"1e3\"",
    "=",
    "\"a\\r\\nb\"",
    "/etc/x",
    "\"blank \\nbreak\"",
    "\"\\ttab first\"",
    "\"+1\"",
    "\"y\"",
    "off",
    "\".5\"",
    "\"<<\"",
];

impl Gen {
    fn leaf(&mut self, name: &str) -> Option<String> {
        if matches!(name, "string" | "cel.Expression" | "v1alpha1.ArgValue")
            && self.rng.chance(self.references)
        {
            self.places += 1;
            return Some(format!("@@{}@@", self.places));
        }
        let pool: &[&str] = match name {
            "block.ByteSize" => &["10GiB", "10 gib", "\"1,000\"", "2.0", "\"\"", "1000", "-5MB"],
            "block.Size" => &["10GiB", "50%", "12.5%", "\"\"", "-10%", "100MB"],
            "cel.Expression" => &["\"a > b\"", "x", "\"\"", "'disk.size > 1u * GiB && !system_disk'"],
            "time.Duration" => &["1h", "90s", "1.5h", "0", "100us", "-1m", "1m0.5s"],
            "meta.URL" | "v1alpha1.Endpoint" => &[
                "\"https://a:6443/x?y=z\"",
                "https://b",
                "\"\"",
                "\"tcp://1.2.3.4:5/\"",
                "\"HTTP://Host/a b\"",
                "\"https://c/%7Ex!\"",
                "\"https://d?\"",
                "\"https://u:p@e/f#g\"",
                "\"file:/x\"",
                "\"file:///y/\"",
                "a/b",
                "null",
            ],
            "network.Addr" | "netip.Addr" => {
                &["10.0.0.1", "\"FD00:0::1\"", "\"::ffff:1.2.3.4\"", "\"\"", "\"fe80::1%eth0\""]
            }
            "network.AddrPort" | "netip.AddrPort" => &["\"10.0.0.1:0080\"", "\"[fd00::1]:80\"", "\"\""],
            "network.Prefix" | "netip.Prefix" => &["10.0.0.1/8", "\"FD00::/64\"", "0.0.0.0/0", "\"\""],
            "nethelpers.HardwareAddr" => &["\"AA:bb:cc:dd:ee:01\"", "\"10:20:30:40:50:01\""],
            "v1alpha1.Base64Bytes" => &["YWJj", "\"\"", "\"YWJj\\nZGVm\"", "null"],
            "v1alpha1.FileMode" => &["0o644", "0644", "420", "0"],
            "v1alpha1.DiskSize" => &["10 GB", "1500000000", "1GiB", "0", "999", "1.5 TB"],
            "v1alpha1.InstallDiskSizeMatcher" => &["\">= 10GB\"", "100GB", "\"< 1 TB\""],
            "v1alpha1.ArgValue" => &["a", "\"1\"", "yes", "\"\"", "null", "[a, b]", "12:30", "[yes]", "true"],
            "network.PortRange" => &["80", "100-200", "\"443\"", "5-5"],
            "x509.PEMEncodedCertificateAndKey" => {
                &["{crt: YWJj, key: ZGVm}", "{crt: YWJj}", "{}", "{key: \"******\"}", "null"]
            }
            "x509.PEMEncodedCertificate" => &["{crt: YWJj}", "{}"],
            "x509.PEMEncodedKey" => &["{key: YWJj}", "{}"],
            "string" => TEXTS,
            "bool" => &["true", "false", "yes", "\"no\"", "null", "False"],
            "uint8" => &["0", "1", "200"],
            "uint16" => &["0", "7", "65535", "1e3", "1_0"],
            "int" | "int64" | "uint" | "uint32" | "uint64" => {
                &["0", "1", "1500", "0x1F", "010", "2.0", "null"]
            }
            _ => return None,
        };
        Some(self.rng.pick(pool).to_owned())
    }

    fn free(&mut self, depth: usize) -> String {
        if depth > 0 && self.rng.chance(self.references) {
            self.places += 1;
            return format!("@@{}@@", self.places);
        }
        match self.rng.below(if depth > 2 { 5 } else { 8 }) {
            0 => self.rng.pick(&["1", "0", "7", "18446744073709551615", "-3", "0o17"]).to_owned(),
            1 => self.rng.pick(&["1.5", "1e7", "0.00001", "123456789.25", ".inf", "0.0"]).to_owned(),
            2 => self.rng.pick(&["true", "false", "null"]).to_owned(),
            3 | 4 => self.rng.pick(TEXTS).replace("2024-01-02", "date"),
            5 | 6 => {
                let n = self.rng.below(4);
                let entries: Vec<String> = ["b", "a10", "a2", "\"1\""][..n]
                    .iter()
                    .map(|k| format!("{k}: {}", self.free(depth + 1)))
                    .collect();
                format!("{{{}}}", entries.join(", "))
            }
            _ => {
                let n = self.rng.below(3);
                let items: Vec<String> = (0..n).map(|_| self.free(depth + 1)).collect();
                format!("[{}]", items.join(", "))
            }
        }
    }

    fn value(&mut self, shape: &str, depth: usize) -> String {
        if self.wrong > 0 && self.rng.chance(self.wrong) {
            return self
                .rng
                .pick(&["{a: b}", "[x]", "maybe", "1.5", "\"5\"", "-1", "null", "99999999999"])
                .to_owned();
        }
        if let Some(inner) = shape.strip_prefix('*') {
            return self.value(inner, depth);
        }
        if let Some(inner) = shape.strip_prefix("[]") {
            let n = self.rng.below(3);
            let items: Vec<String> = (0..n).map(|_| self.value(inner, depth + 1)).collect();
            return format!("[{}]", items.join(", "));
        }
        if let Some(inner) = shape.strip_prefix("map[string]") {
            if inner == "any" {
                return self.free(0);
            }
            let n = self.rng.below(4);
            let entries: Vec<String> = ["k2", "k10", "\"a/b.c\"", "\"on\""][..n]
                .iter()
                .map(|k| format!("{k}: {}", self.value(inner, depth + 1)))
                .collect();
            return format!("{{{}}}", entries.join(", "));
        }
        if shape == "any" {
            return self.free(0);
        }
        let ty = self.tables["types"][shape].clone();
        if let Some(texts) = ty["enum"].as_array() {
            let text = texts[self.rng.below(texts.len())].as_str().unwrap();
            let text = if self.rng.chance(20) { text.to_uppercase() } else { text.to_owned() };
            return format!("\"{text}\"");
        }
        if let Some(leaf) = self.leaf(shape) {
            return leaf;
        }
        if let Some(is) = ty["is"].as_str() {
            return self.value(is, depth);
        }
        let fields = self.fields(shape, depth);
        format!("{{{}}}", fields.join(", "))
    }

    /// Some of the fields of a struct, as `key: value`.
    fn fields(&mut self, name: &str, depth: usize) -> Vec<String> {
        let mut out = Vec::new();
        for field in self.tables["types"][name]["fields"].as_array().cloned().unwrap_or_default() {
            let (key, shape) = (field["key"].as_str().unwrap(), field["shape"].as_str().unwrap());
            if shape == "meta.Meta" {
                continue;
            }
            if field["inline"].as_bool() == Some(true) {
                if shape == "map[string]any" {
                    for key in ["zz", "a1", "b"] {
                        if self.rng.chance(40) {
                            out.push(format!("{key}: {}", self.free(1)));
                        }
                    }
                } else {
                    out.extend(self.fields(shape, depth));
                }
            } else if self.rng.chance(if depth < 3 { 45 } else { 60 }) {
                out.push(format!("{key}: {}", self.value(shape, depth + 1)));
            }
        }
        out
    }

    fn document(&mut self, kind: &Value) -> String {
        let root = kind["root"].as_str().unwrap();
        let name = kind["kind"].as_str().unwrap();
        let mut fields = self.fields(root, 0);
        fields.retain(|f| !f.starts_with("name: ") || name == "v1alpha1");
        if name == "v1alpha1" {
            if !fields.iter().any(|f| f.starts_with("machine:")) {
                fields.push(format!("machine: {}", self.value("v1alpha1.MachineConfig", 1)));
            }
        } else {
            fields.insert(0, format!("apiVersion: v1alpha1\nkind: {name}"));
            if kind["name"].is_string() {
                fields.push("name: \"100\"".to_owned());
            }
        }
        fields.join("\n") + "\n"
    }

    /// A patch that deletes one field or element of a document, beside a change.
    fn deletion(&mut self, kind: &Value) -> String {
        let document = self.document(kind);
        let mut lines: Vec<String> = document.lines().map(str::to_owned).collect();
        let places: Vec<usize> = (0..lines.len())
            .filter(|i| {
                !["apiVersion", "kind", "name"].iter().any(|k| lines[*i].starts_with(&format!("{k}:")))
            })
            .collect();
        if places.is_empty() {
            return document;
        }
        let line = &mut lines[places[self.rng.below(places.len())]];
        // any value in the line may become the deletion
        let cuts: Vec<usize> = line.match_indices(": ").map(|(i, _)| i).collect();
        let at = cuts[self.rng.below(cuts.len().min(4))];
        let end = matching_end(line, at + 2);
        line.replace_range(at + 2..end, "{$patch: delete}");
        lines.join("\n") + "\n"
    }
}

/// The end of the flow value that starts at `from`.
fn matching_end(line: &str, from: usize) -> usize {
    let (mut depth, mut quoted) = (0, None);
    for (i, c) in line[from..].char_indices() {
        match (quoted, c) {
            (Some(q), _) if c == q => quoted = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quoted = Some(c),
            (None, '{' | '[') => depth += 1,
            (None, '}' | ']') if depth == 0 => return from + i,
            (None, '}' | ']') => depth -= 1,
            (None, ',') if depth == 0 => return from + i,
            _ => {}
        }
    }
    line.len()
}

fn tables() -> Value {
    let path = format!("{}/../../schema/talos/1.13/tables.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn run(what: &str, seed: u64, rounds: usize, wrong: usize, deletes: bool) {
    println!("{what}: seed {seed}");
    let tables = tables();
    let kinds = tables["kinds"].as_array().unwrap().clone();
    let mut generator = Gen { rng: Rng(seed), tables, wrong, references: 0, places: 0 };
    let mut oracle = Oracle::start();
    let mut tally = Tally::default();
    for round in 0..rounds {
        // the v1alpha1 document has the most types, so it comes up in every third round
        let kind = if round % 3 == 0 { kinds.last().unwrap() } else { &kinds[round % kinds.len()] };
        let config = generator.document(kind);
        let patches: Vec<String> = (0..generator.rng.below(4))
            .map(|_| {
                let delete = deletes && generator.rng.chance(60);
                if delete { generator.deletion(kind) } else { generator.document(kind) }
            })
            .collect();
        let patches: Vec<&str> = patches.iter().map(String::as_str).collect();
        match compare(&mut oracle, &config, &patches) {
            Outcome::RefusedByName(e) => tally.by_name.push(e),
            other => tally.add(other),
        }
    }
    assert!(tally.equal > rounds / 5, "too few documents are accepted: {}", tally.equal);
    tally.finish_brief(what);
}

#[test]
fn random_documents_and_patches() {
    run("random documents", 0x5EED_0001, 1500, 0, false);
}

#[test]
fn random_documents_with_wrong_values() {
    run("random documents with wrong values", 0x5EED_0002, 1000, 1, false);
}

#[test]
fn random_deletions() {
    run("random deletions", 0x5EED_0003, 1000, 0, true);
}

/// The value that the reference of a place stands for.
fn value_of(number: &str) -> String {
    match number.len() % 3 {
        0 => format!("several\nlines {number}\n"),
        1 => format!("yes: {number}"),
        _ => number.to_owned(),
    }
}

/// Puts something in place of every `@@n@@`.
fn fill(text: &str, with: &dyn Fn(&str) -> String) -> String {
    text.split("@@")
        .enumerate()
        .map(|(i, part)| if i % 2 == 1 { with(part) } else { part.to_owned() })
        .collect()
}

#[test]
fn merging_references_and_resolving_is_resolving_and_merging() {
    let (tables, seed) = (tables(), 0x5EED_0004);
    println!("references: seed {seed}");
    let kinds = tables["kinds"].as_array().unwrap().clone();
    let mut generator = Gen { rng: Rng(seed), tables, wrong: 0, references: 35, places: 0 };
    let options = Options { opaque_tag: Some("!ref".to_owned()), ..Options::default() };
    let (mut equal, mut refused) = (0, 0);
    for round in 0..1500 {
        let kind = if round % 3 == 0 { kinds.last().unwrap() } else { &kinds[round % kinds.len()] };
        let config = generator.document(kind);
        let patches: Vec<String> = (0..generator.rng.below(3)).map(|_| generator.document(kind)).collect();
        let reference = |n: &str| format!("!ref r{n}");
        let quoted = |n: &str| Value::String(value_of(n)).to_string();
        let resolved: Vec<String> = patches.iter().map(|p| fill(p, &quoted)).collect();
        let resolved: Vec<&str> = resolved.iter().map(String::as_str).collect();
        let Ok(want) = support::ours(&fill(&config, &quoted), &resolved) else { continue };
        let load =
            |text: &str| Config::load(&Tables::v1_13(), text.as_bytes(), SourceId(0), &options).unwrap();
        let mut ours = load(&fill(&config, &reference));
        let applied = patches.iter().try_for_each(|p| {
            let text = fill(p, &reference);
            let patch = Patch::load(&Tables::v1_13(), text.as_bytes(), SourceId(1), &options).unwrap();
            ours.apply(&patch).map(|_| ())
        });
        if applied.is_err() {
            refused += 1;
            continue;
        }
        // what is printed with references in it loads as the same
        let printed = String::from_utf8(ours.encode().unwrap()).unwrap();
        let value =
            |text: &str| Ok::<_, std::fmt::Error>(Resolved::Text(value_of(text.strip_prefix('r').unwrap())));
        let done = ours.resolve(|text, _, _| value(text)).unwrap();
        support::assert_same(std::str::from_utf8(&done.encode().unwrap()).unwrap(), &want, &config);
        if let Ok(again) = Config::load(&Tables::v1_13(), printed.as_bytes(), SourceId(0), &options) {
            assert_eq!(String::from_utf8(again.encode().unwrap()).unwrap(), printed);
        }
        equal += 1;
    }
    println!("references: {equal} equal, {refused} refused because of a reference");
    assert!(equal > 500, "{equal}");
}

#[test]
fn random_redaction() {
    let (tables, seed) = (tables(), 0x5EED_0005);
    println!("redaction: seed {seed}");
    let kinds = tables["kinds"].as_array().unwrap().clone();
    let mut generator = Gen { rng: Rng(seed), tables, wrong: 0, references: 0, places: 0 };
    let mut oracle = Oracle::start();
    let mut equal = 0;
    for round in 0..1000 {
        let kind = if round % 2 == 0 { kinds.last().unwrap() } else { &kinds[round % kinds.len()] };
        let text = generator.document(kind);
        let loaded = Config::load(&Tables::v1_13(), text.as_bytes(), SourceId(0), &Options::default());
        let (Ok(config), Ok(theirs)) = (loaded, oracle.redact(&text, "HIDDEN").result()) else { continue };
        let Ok(ours) = config.redacted("HIDDEN").encode() else { continue };
        support::assert_same(std::str::from_utf8(&ours).unwrap(), &theirs, &text);
        equal += 1;
    }
    println!("redaction: {equal} equal");
    assert!(equal > 500, "{equal}");
}
