//! Import and adoption: read, parse every document, identify, substitute, guard.
//!
//! Nothing is stored or written here. The caller gets the sanitised documents and the values to create, and writes
//! both or neither.

use std::collections::{BTreeMap, BTreeSet};

use bronzeward_intent::Mark;
use talos_config::{
    Config, ConfigError, EncodeError, LeafValue, Limits, Options, Path, Resolved, SourceId, Tables,
};

use crate::guard::{self, Copy};
use crate::keyed::KeyedDigest;
use crate::reference::{SecretName, TAG};
use crate::value::SecretValue;

/// The class of a field that is no schema secret: what an operator marked.
pub const OPAQUE_CLASS: &str = "opaque";

/// What is read, and what the operator said of it.
pub struct Ingest<'a> {
    /// The tables of the cluster's contract.
    pub tables: &'a Tables,
    /// The exact bytes from the node.
    pub bytes: &'a [u8],
    /// Places whose values are secrets.
    pub marks: &'a [Path],
    /// Places (or whole regions) that hold none.
    pub clears: &'a [Path],
    /// Take every undecided region as a mark.
    pub mark_undecided: bool,
    /// Texts that are known not to be secret, such as the cluster's id.
    pub known_clear: &'a [&'a str],
    /// The keyed digest of a value.
    pub digest: &'a dyn Fn(&str) -> KeyedDigest,
    /// What is stored already: digest to name and version.
    pub stored: &'a BTreeMap<KeyedDigest, (String, u64)>,
    /// Names that are taken.
    pub taken: &'a BTreeSet<String>,
}

/// A value to be created.
#[derive(Clone, Debug)]
pub struct NewSecret {
    /// Its name.
    pub name: SecretName,
    /// The classes of fields in which it stands.
    pub fields: BTreeSet<String>,
    /// The value.
    pub value: SecretValue,
    /// Its keyed digest.
    pub digest: KeyedDigest,
}

/// The outcome.
#[derive(Clone)]
pub struct Ingested {
    /// The documents, every value replaced by a reference.
    pub sanitised: Vec<u8>,
    /// Our canonical encoding of what was read, with values: for the digest of the meaning.
    pub canonical: zeroize::Zeroizing<Vec<u8>>,
    /// Values to create, each once.
    pub new: Vec<NewSecret>,
    /// Stored secrets that were found again: name to the classes of fields.
    pub reused: BTreeMap<String, BTreeSet<String>>,
    /// The marks that hit, as they are stored.
    pub marks: Vec<Mark>,
    /// What was cleared, as it is stored.
    pub cleared: Vec<Mark>,
}

impl std::fmt::Debug for Ingested {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // `canonical` holds values
        f.debug_struct("Ingested")
            .field("new", &self.new)
            .field("reused", &self.reused)
            .finish_non_exhaustive()
    }
}

/// Why nothing was ingested.
#[derive(Debug, thiserror::Error)]
pub enum IngestError {
    /// The input holds a reference or a document of ours: it did not come from a person.
    #[error(
        "ingest-reserved: {at} holds a `!bwref` tag or a Bronzeward document; a node's configuration has neither"
    )]
    Reserved {
        /// Where.
        at: String,
    },
    /// The input cannot be read as Talos would read it.
    #[error("ingest-unreadable: the configuration cannot be read")]
    Unreadable(#[source] ConfigError),
    /// The input cannot be written again as Talos would.
    #[error("ingest-unencodable: the configuration cannot be encoded")]
    Unencodable(#[source] EncodeError),
    /// A mark hits nothing.
    #[error("mark-unaddressed: `{path}` hits nothing that could be a secret; see the paths with `--list`")]
    MarkMisses {
        /// The mark.
        path: String,
    },
    /// A cleared place is one that Talos redacts.
    #[error("clear-refused: `{path}` is a field that Talos itself takes for secret")]
    ClearRedacted {
        /// The place.
        path: String,
    },
    /// Regions that can hold secrets, of which nobody said anything.
    #[error("undecided: {} regions can hold secrets, say `--mark PATH` or `--clear PATH` for each:\n{}", .0.len(), .0.join("\n"))]
    Undecided(Vec<String>),
    /// Extracted values stand elsewhere too.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Copies(Vec<Copy>),
    /// The sanitised documents do not give back what was read.
    #[error(
        "fidelity: with its references resolved the sanitised configuration is not what was read, at `{path}`"
    )]
    Fidelity {
        /// Where.
        path: String,
    },
}

struct Secret {
    path: Path,
    text: SecretValue,
    class: String,
}

/// Ingests.
///
/// # Errors
/// [`IngestError`]; no value is in it.
pub fn ingest(input: &Ingest<'_>) -> Result<Ingested, IngestError> {
    refuse_reserved(input.bytes)?;
    let plain = Options { opaque_tag: None, limits: Limits::default() };
    let original =
        Config::load(input.tables, input.bytes, SourceId(0), &plain).map_err(IngestError::Unreadable)?;
    let canonical = zeroize::Zeroizing::new(original.encode().map_err(IngestError::Unencodable)?);
    let (secrets, marks, cleared) = identify(input, &original)?;
    let tagged = Options { opaque_tag: Some(TAG.to_owned()), limits: Limits::default() };
    let mut config =
        Config::load(input.tables, &canonical, SourceId(0), &tagged).map_err(IngestError::Unreadable)?;
    let mut naming = Naming { input, names: BTreeMap::new(), new: Vec::new(), reused: BTreeMap::new() };
    for secret in &secrets {
        let reference = naming.reference(secret);
        config
            .substitute(&secret.path, &reference)
            .map_err(|_| IngestError::MarkMisses { path: original.display_path(&secret.path).to_string() })?;
    }
    let sanitised = config.encode().map_err(IngestError::Unencodable)?;
    let values: Vec<&SecretValue> = secrets.iter().map(|secret| &secret.text).collect();
    let copies =
        guard::copies(&sanitised, &values).map_err(|err| IngestError::Unreadable(ConfigError::from(err)))?;
    if !copies.is_empty() {
        return Err(IngestError::Copies(copies));
    }
    check_fidelity(&config, &secrets, &canonical)?;
    let Naming { new, reused, .. } = naming;
    Ok(Ingested { sanitised, canonical, new, reused, marks, cleared })
}

/// The text of a base file: header, then the documents.
pub fn base_file(header: &bronzeward_intent::Base, sanitised: &[u8]) -> Vec<u8> {
    let mut out = bronzeward_intent::yaml_text::to_yaml(header).into_bytes();
    out.extend(b"---\n");
    out.extend(sanitised);
    out
}

fn refuse_reserved(bytes: &[u8]) -> Result<(), IngestError> {
    let limits = Limits::default();
    let documents = talos_config::read_stream(bytes, talos_config::Dialect::default(), &limits)
        .map_err(|err| IngestError::Unreadable(ConfigError::from(err)))?;
    for document in &documents {
        let Some(root) = &document.root else { continue };
        if bronzeward_intent::fragment::is_own(root) {
            return Err(IngestError::Reserved { at: document.pos.to_string() });
        }
        let mut found = None;
        root.walk(&mut |node| {
            if node.tag.as_deref() == Some(TAG) {
                found.get_or_insert(node.pos);
            }
        });
        if let Some(pos) = found {
            return Err(IngestError::Reserved { at: pos.to_string() });
        }
    }
    Ok(())
}

type Identified = (Vec<Secret>, Vec<Mark>, Vec<Mark>);

fn identify(input: &Ingest<'_>, config: &Config) -> Result<Identified, IngestError> {
    let mut secrets: Vec<Secret> = Vec::new();
    for leaf in config.redacted_paths() {
        let path = Path::of(&leaf.document, &leaf.pointer);
        if input.clears.iter().any(|clear| covers(config, clear, &path)) {
            return Err(IngestError::ClearRedacted { path: config.display_path(&path).to_string() });
        }
        secrets.push(Secret { path, text: SecretValue::new(leaf.text), class: leaf.field });
    }
    let mut marks: Vec<Mark> = Vec::new();
    for mark in input.marks {
        let path = config.stored_path(mark);
        let misses = || IngestError::MarkMisses { path: mark.to_string() };
        let Some(LeafValue::Text(text)) = config.get(&path).and_then(|found| found.value) else {
            return Err(misses());
        };
        if text.is_empty() {
            return Err(misses());
        }
        marks.push(stored(&path));
        if !secrets.iter().any(|secret| secret.path == path) {
            secrets.push(Secret { path, text: SecretValue::new(text), class: OPAQUE_CLASS.to_owned() });
        }
    }
    let mut undecided: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for leaf in config.opaque_regions() {
        let path = Path::of(&leaf.document, &leaf.pointer);
        let decided = secrets.iter().any(|secret| secret.path == path)
            || input.clears.iter().any(|clear| covers(config, clear, &path))
            || input.known_clear.contains(&leaf.text.as_str())
            || leaf.text.is_empty();
        if decided {
            continue;
        }
        if input.mark_undecided {
            marks.push(stored(&path));
            secrets.push(Secret { path, text: SecretValue::new(leaf.text), class: OPAQUE_CLASS.to_owned() });
        } else {
            let region = config.display_path(&Path::of(&leaf.document, &leaf.region)).to_string();
            let exact = config.display_path(&path).to_string();
            undecided.entry(region).or_default().push(exact);
        }
    }
    if !undecided.is_empty() {
        return Err(IngestError::Undecided(undecided.into_iter().map(describe_region).collect()));
    }
    let mut cleared: Vec<Mark> = input.clears.iter().map(|path| stored(&config.stored_path(path))).collect();
    for list in [&mut marks, &mut cleared] {
        list.sort();
        list.dedup();
    }
    Ok((secrets, marks, cleared))
}

/// A region with one value is named by that value; one with many by itself.
fn describe_region((region, mut values): (String, Vec<String>)) -> String {
    match values.len() {
        1 => format!("  {}", values.remove(0)),
        count => format!("  {region}  ({count} values below it)"),
    }
}

/// Does a cleared place cover a path: the same, or a container of it?
fn covers(config: &Config, clear: &Path, path: &Path) -> bool {
    let (clear, path) = (config.stored_path(clear), config.stored_path(path));
    clear.document == path.document && path.segments.starts_with(&clear.segments)
}

fn stored(path: &Path) -> Mark {
    let text = path.to_string();
    let pointer = path.pointer();
    let document = text.strip_suffix(&pointer).unwrap_or(&text).trim_end_matches(':').to_owned();
    Mark { document, path: pointer }
}

/// A stored mark as a path.
///
/// # Errors
/// When it cannot be read as one.
pub fn mark_path(mark: &Mark) -> Result<Path, talos_config::PathError> {
    format!("{}:{}", mark.document, mark.path).parse()
}

struct Naming<'a> {
    input: &'a Ingest<'a>,
    /// Digest to the reference's text: equal values share one name.
    names: BTreeMap<KeyedDigest, String>,
    new: Vec<NewSecret>,
    reused: BTreeMap<String, BTreeSet<String>>,
}

impl Naming<'_> {
    fn reference(&mut self, secret: &Secret) -> String {
        let digest = (self.input.digest)(secret.text.expose());
        if let Some((name, _)) = self.input.stored.get(&digest) {
            self.reused.entry(name.clone()).or_default().insert(secret.class.clone());
            return name.clone();
        }
        if let Some(name) = self.names.get(&digest) {
            let known = self.new.iter_mut().find(|new| new.digest == digest);
            if let Some(known) = known {
                known.fields.insert(secret.class.clone());
            }
            return name.clone();
        }
        let name = self.free_name(&secret.path);
        self.names.insert(digest.clone(), name.as_str().to_owned());
        let fields = BTreeSet::from([secret.class.clone()]);
        self.new.push(NewSecret { name: name.clone(), fields, value: secret.text.clone(), digest });
        name.as_str().to_owned()
    }

    /// A name made from the place, with a number when it is taken.
    fn free_name(&self, path: &Path) -> SecretName {
        let base = name_of(path);
        let taken = |name: &str| {
            self.input.taken.contains(name) || self.new.iter().any(|new| new.name.as_str() == name)
        };
        let mut candidate = base.clone();
        let mut number = 2;
        while taken(&candidate) {
            candidate = format!("{base}-{number}");
            number += 1;
        }
        candidate.parse().expect("BUG: segments are made of lower-case letters, digits and hyphens")
    }
}

fn name_of(path: &Path) -> String {
    let document = match &path.document {
        talos_config::DocumentRef::Id { kind, name } if kind != "v1alpha1" => {
            let name = name.as_deref().map(|name| format!("/{}", slug(name))).unwrap_or_default();
            format!("{}{name}/", slug(kind))
        }
        _ => String::new(),
    };
    let rest: Vec<String> = path.segments.iter().map(|segment| slug(segment)).collect();
    let name = format!("{document}{}", rest.join("/"));
    if name.len() > 150 { name[..150].trim_end_matches(['/', '-']).to_owned() } else { name }
}

fn slug(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            out.push(c.to_ascii_lowercase());
        } else if !out.ends_with('-') && !out.is_empty() {
            out.push('-');
        }
    }
    let out = out.trim_matches('-');
    if out.is_empty() { "x".to_owned() } else { out.to_owned() }
}

#[derive(Debug, thiserror::Error)]
#[error("A reference that was not made here")]
struct Foreign;

fn check_fidelity(config: &Config, secrets: &[Secret], canonical: &[u8]) -> Result<(), IngestError> {
    let resolved = config.resolve(|_, path, _| {
        let stored = config.stored_path(path);
        let secret = secrets.iter().find(|secret| secret.path == stored).ok_or(Foreign)?;
        Ok(Resolved::Text(secret.text.expose().to_owned()))
    });
    let resolved = resolved.map_err(|err| IngestError::Fidelity { path: path_of(&err) })?;
    let again = zeroize::Zeroizing::new(resolved.encode().map_err(IngestError::Unencodable)?);
    if *again == canonical { Ok(()) } else { Err(IngestError::Fidelity { path: "unknown".to_owned() }) }
}

fn path_of(err: &talos_config::ResolveError<Foreign>) -> String {
    use talos_config::ResolveError::{Empty, Missing, Unfit};
    let (Missing { document, path, .. } | Unfit { document, path, .. } | Empty { document, path }) = err;
    format!("{document}{path}")
}
