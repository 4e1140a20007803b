//! What holds for every configuration and patch, whatever it says: cases are made from the tables of every minor.
//! These tests need no Go.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

#[path = "properties/planted.rs"]
mod planted;
#[path = "properties/provenance.rs"]
mod provenance;

use std::collections::BTreeSet;

use bronzeward_testkit::generator::{Case, Generator, Manner};
use bronzeward_testkit::tools::workspace;
use serde_json::Value;
use talos_config::{
    ChangeKind, Config, ConfigError, EncodeError, EncodeReason, Leaf, LeafValue, Limits, MergeError,
    MergeReason, Options, Origin, Patch, Pos, SourceId, Tables, diff, read_stream,
};

const SEED: u64 = 0x000B_A5A1_7000;
const CASES: u64 = 4000;

/// A minor's tables, and the same as JSON.
struct Minor {
    tables: Tables,
    json: Value,
}

fn minors() -> impl Iterator<Item = Minor> {
    Tables::minors().map(|name| {
        let bytes = std::fs::read(workspace().join(format!("schema/talos/{name}/tables.json"))).unwrap();
        Minor { tables: Tables::embedded(name).unwrap(), json: serde_json::from_slice(&bytes).unwrap() }
    })
}

impl Minor {
    fn cases(&self, manner: Manner) -> impl Iterator<Item = Case> {
        let mut generator = Generator::new(&self.json, SEED, manner);
        (0..CASES).map(move |number| generator.numbered(SEED, number))
    }

    fn config(&self, text: &str) -> Result<Config, ConfigError> {
        Config::load(&self.tables, text.as_bytes(), SourceId(0), &Options::default())
    }

    fn patch(&self, text: &str, source: usize) -> Result<Patch, ConfigError> {
        let source = SourceId(u32::try_from(source).unwrap());
        Patch::load(&self.tables, text.as_bytes(), source, &Options::default())
    }

    /// The configuration of a case, and those of its patches that load.
    fn loaded(&self, case: &Case) -> Option<(Config, Vec<Patch>)> {
        let config = self.config(&case.config).ok()?;
        let numbered = case.patches.iter().zip(1..);
        Some((config, numbered.filter_map(|(text, n)| self.patch(text, n).ok()).collect()))
    }
}

/// Everything that can be seen of a configuration.
fn seen(config: &Config) -> (Result<Vec<u8>, EncodeError>, Vec<String>) {
    let leaf = |l: Leaf| {
        let value = match l.value {
            LeafValue::Text(text) | LeafValue::Opaque(text) => text,
            LeafValue::Empty => String::new(),
        };
        format!("{}{}={value} {:?} {:?} {:?}", l.document, l.pointer, l.origin, l.overrode, l.rule)
    };
    (config.encode(), config.leaves().map(leaf).collect())
}

/// Talos prints some enumerations that are not set so that they do not load again: the error stands at a text that
/// nobody wrote. A null counts as written, but not as that text.
fn is_unset_enumeration(config: &Config, sources: &[&str], printed: &str, error: &ConfigError) -> bool {
    let ConfigError::Value { path, pos, .. } = error else { return false };
    let from = |text: &str, pos: Pos| -> String {
        let line = text.lines().nth(pos.line as usize - 1).unwrap_or_default();
        line.chars().skip(pos.column as usize - 1).collect()
    };
    let written = from(printed, *pos);
    let stands = |origin: Origin| {
        let source = sources.get(origin.source.0 as usize).copied().unwrap_or_default();
        from(source, origin.pos).trim_start_matches(['"', '\'']).starts_with(&written)
    };
    let same = LeafValue::Text(written.clone());
    !config.leaves().any(|leaf| leaf.pointer == *path && leaf.value == same && stands(leaf.origin))
}

#[test]
fn what_is_printed_reads_as_the_same_configuration_and_prints_the_same() {
    for minor in minors() {
        let mut again = 0;
        for case in minor.cases(Manner::ALL) {
            let Some((mut config, patches)) = minor.loaded(&case) else { continue };
            for patch in &patches {
                let _ = config.apply(patch);
            }
            let sources: Vec<&str> =
                [&case.config].into_iter().chain(&case.patches).map(String::as_str).collect();
            let Ok(bytes) = config.encode() else { continue };
            let text = String::from_utf8(bytes).unwrap();
            match minor.config(&text) {
                Err(ConfigError::NoDocuments) if config.documents().next().is_none() => {}
                Ok(read) => {
                    assert_eq!(String::from_utf8(read.encode().unwrap()).unwrap(), text);
                    // fields that nobody set are printed, too, and then they are set
                    let changes = diff(&config, &read);
                    assert!(changes.iter().all(|c| c.kind == ChangeKind::Added), "{changes:?}\n{text}");
                    let third = minor.config(&text).unwrap();
                    assert_eq!((diff(&read, &third), seen(&third)), (Vec::new(), seen(&read)), "{text}");
                    again += 1;
                }
                Err(error) => {
                    assert!(is_unset_enumeration(&config, &sources, &text, &error), "{error}\n{text}")
                }
            }
        }
        assert!(again > CASES / 3, "{}: only {again} configurations were read again", minor.tables.minor());
    }
}

/// What tells the documents of a patch apart, as they are written.
fn documents(minor: &Minor, text: &str) -> BTreeSet<(String, String)> {
    let read = read_stream(text.as_bytes(), minor.tables.dialect(), &Limits::default()).unwrap();
    let field = |root: &talos_config::Node, key| {
        root.get(key).and_then(talos_config::Node::text).unwrap_or_default().to_owned()
    };
    read.iter().filter_map(|d| d.root.as_ref()).map(|r| (field(r, "kind"), field(r, "name"))).collect()
}

/// Whether two patches may stand in one file as they stand in two: they speak of different documents, or the minor
/// takes the same document twice and the second deletes nothing (deletions in the v1alpha1 document come first).
fn may_share_a_file(minor: &Minor, first: &str, second: &str) -> bool {
    let twice = minor.tables.minor() == "1.14" && !second.contains("$patch");
    let apart = || documents(minor, first).is_disjoint(&documents(minor, second));
    first.ends_with('\n') && !second.starts_with('\u{feff}') && (twice || apart())
}

fn excludes(error: &MergeError) -> bool {
    matches!(error.reason, MergeReason::Conflict | MergeReason::DuplicateDocument)
}

/// What is printed, or why not: all but the place, since a value stands elsewhere in a file that holds both patches.
fn printed(config: &Config) -> Result<Vec<u8>, (String, String, EncodeReason)> {
    config.encode().map_err(|error| (error.document, error.path, error.reason))
}

#[test]
fn two_patches_do_what_one_file_of_both_does() {
    for minor in minors() {
        let (mut equal, mut refused) = (0, 0);
        for case in minor.cases(Manner::ALL) {
            let Ok(config) = minor.config(&case.config) else { continue };
            for pair in case.patches.windows(2) {
                let (Ok(a), Ok(b)) = (minor.patch(&pair[0], 1), minor.patch(&pair[1], 2)) else { continue };
                if !may_share_a_file(&minor, &pair[0], &pair[1]) {
                    continue;
                }
                let text = format!("{}---\n{}", pair[0], pair[1]);
                let mut apart = config.clone();
                let done = apart.apply(&a).and_then(|_| apart.apply(&b));
                let both = minor.patch(&text, 1);
                let mut together = config.clone();
                match (done, both.map(|both| together.apply(&both))) {
                    (Ok(_), Ok(Ok(_))) => {
                        assert_eq!(printed(&apart), printed(&together), "{}\n>>>\n{text}", case.config);
                        equal += 1;
                    }
                    (Ok(_), other) => panic!("{other:?}: {}\n>>>\n{text}", case.config),
                    // what excludes each other is looked for at the end of a patch, and may be gone by then
                    (Err(error), Ok(Ok(_))) => assert!(excludes(&error), "{error}: {}\n{text}", case.config),
                    (Err(_), _) => refused += 1,
                }
            }
        }
        assert!(equal > 500 && refused > 2, "{}: {equal} equal, {refused} refused", minor.tables.minor());
    }
}

#[test]
fn a_copy_is_never_changed_by_what_is_done_to_another() {
    for minor in minors() {
        let (mut changed, mut refused) = (0, 0);
        for case in minor.cases(Manner::ALL) {
            let Some((mut config, patches)) = minor.loaded(&case) else { continue };
            for patch in &patches {
                let (copy, before) = (config.clone(), seen(&config));
                match config.apply(patch) {
                    Ok(applied) => changed += usize::from(applied.changed),
                    Err(_) => {
                        refused += 1;
                        assert_eq!(seen(&config), before, "a refused patch left a trace: {}", case.config);
                    }
                }
                drop(config.redacted("x"));
                assert_eq!(seen(&copy), before, "{}", case.config);
                // the same patch again on the copy gives the same
                let mut twin = copy;
                let _ = twin.apply(patch);
                assert_eq!(seen(&twin), seen(&config), "{}", case.config);
            }
        }
        assert!(changed > 1000 && refused > 30, "{changed} changes, {refused} refused");
    }
}
