//! The embedded store: age files, to X25519 and ssh-ed25519 recipients.
//!
//! A secret's file is one line of JSON and an armoured age ciphertext. The plaintext repeats the line's fields and
//! holds the value, so that a file that was moved or renamed does not open as something else; whether the value is
//! the right one is for the lock's keyed digest to say.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use age::armor::{ArmoredReader, ArmoredWriter, Format};
use age::{Decryptor, Encryptor, Identity, Recipient};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::keyed::InstallationKey;
use crate::value::SecretValue;

/// What stands outside a secret's ciphertext, and again inside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretHeader {
    /// Always 1.
    pub format: u32,
    /// The repository's id.
    pub repository: String,
    /// The cluster.
    pub cluster: String,
    /// The secret.
    pub name: String,
    /// Its version.
    pub version: u64,
    /// Its kind.
    pub kind: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sealed {
    #[serde(flatten)]
    header: SecretHeaderOwned,
    value: String,
}

// `flatten` and `deny_unknown_fields` do not go together on one type
#[derive(Serialize, Deserialize)]
struct SecretHeaderOwned {
    format: u32,
    repository: String,
    cluster: String,
    name: String,
    version: u64,
    kind: String,
}

impl From<&SecretHeader> for SecretHeaderOwned {
    fn from(header: &SecretHeader) -> SecretHeaderOwned {
        let SecretHeader { format, repository, cluster, name, version, kind } = header.clone();
        SecretHeaderOwned { format, repository, cluster, name, version, kind }
    }
}

/// What can go wrong with an age file.
#[derive(Debug, thiserror::Error)]
pub enum AgeError {
    /// A recipient in the policy cannot be used.
    #[error("The recipient of `{who}` cannot be used: write an age1… or an ssh-ed25519 public key")]
    Recipient {
        /// The principal.
        who: String,
    },
    /// Nobody would be able to decrypt.
    #[error("There is no recipient to encrypt to: give principals a `recipient` in bronzeward.yaml")]
    NoRecipients,
    /// An identity file cannot be used.
    #[error(
        "The age identity `{path}` cannot be used: an age identity file or an ssh-ed25519 key without passphrase is needed"
    )]
    Identity {
        /// The file.
        path: PathBuf,
    },
    /// The file is not for us, or was altered.
    #[error("`{path}` cannot be decrypted with this identity: it is encrypted to others, or was altered")]
    Decrypt {
        /// The file.
        path: String,
        /// Why.
        source: age::DecryptError,
    },
    /// Encrypting failed.
    #[error("`{path}` cannot be encrypted")]
    Encrypt {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The file has another shape.
    #[error("`{path}` is no secret's file: {problem}")]
    Shape {
        /// The file.
        path: String,
        /// What is wrong.
        problem: &'static str,
    },
}

/// To whom something is encrypted.
pub struct AgeRecipient(Box<dyn Recipient + Send + Sync>);

impl FromStr for AgeRecipient {
    type Err = ();

    fn from_str(text: &str) -> Result<AgeRecipient, ()> {
        if let Ok(key) = text.parse::<age::x25519::Recipient>() {
            return Ok(AgeRecipient(Box::new(key)));
        }
        // RSA recipients are left out: their padding has known weaknesses
        if !text.starts_with("ssh-ed25519 ") {
            return Err(());
        }
        text.parse::<age::ssh::Recipient>().map(|key| AgeRecipient(Box::new(key))).map_err(drop)
    }
}

/// Reads the recipients of principals.
///
/// # Errors
/// [`AgeError::Recipient`] for the first that cannot be used, [`AgeError::NoRecipients`] for none.
pub fn recipients<'a>(
    of: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<Vec<AgeRecipient>, AgeError> {
    let list = of
        .into_iter()
        .map(|(who, text)| text.parse().map_err(|()| AgeError::Recipient { who: who.to_owned() }))
        .collect::<Result<Vec<_>, _>>()?;
    if list.is_empty() { Err(AgeError::NoRecipients) } else { Ok(list) }
}

/// Who decrypts: an age identity, or an SSH key that serves as one.
pub struct AgeIdentity(Vec<Box<dyn Identity + Send + Sync>>);

impl std::fmt::Debug for AgeIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AgeIdentity(…)")
    }
}

impl AgeIdentity {
    /// Reads an identity from the bytes of its file (`path` is for messages).
    ///
    /// # Errors
    /// [`AgeError::Identity`].
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<AgeIdentity, AgeError> {
        let bad = || AgeError::Identity { path: path.to_path_buf() };
        if bytes.starts_with(b"-----BEGIN") {
            return match age::ssh::Identity::from_buffer(bytes, None) {
                Ok(identity @ age::ssh::Identity::Unencrypted(_)) => {
                    Ok(AgeIdentity(vec![Box::new(identity)]))
                }
                _ => Err(bad()),
            };
        }
        let file = age::IdentityFile::from_buffer(bytes).map_err(|_| bad())?;
        let list = file.into_identities().map_err(|_| bad())?;
        if list.is_empty() { Err(bad()) } else { Ok(AgeIdentity(list)) }
    }
}

/// Encrypts to all recipients, armoured.
fn seal(path: &str, plain: &[u8], to: &[AgeRecipient]) -> Result<Vec<u8>, AgeError> {
    let failed = |source| AgeError::Encrypt { path: path.to_owned(), source };
    let list = to.iter().map(|recipient| &*recipient.0 as &dyn Recipient);
    let encryptor = Encryptor::with_recipients(list).map_err(|err| failed(std::io::Error::other(err)))?;
    let armour = ArmoredWriter::wrap_output(Vec::new(), Format::AsciiArmor).map_err(failed)?;
    let mut writer = encryptor.wrap_output(armour).map_err(failed)?;
    writer.write_all(plain).map_err(failed)?;
    writer.finish().and_then(ArmoredWriter::finish).map_err(failed)
}

fn open(path: &str, sealed: &[u8], identity: &AgeIdentity) -> Result<Zeroizing<Vec<u8>>, AgeError> {
    let failed = |source| AgeError::Decrypt { path: path.to_owned(), source };
    let decryptor = Decryptor::new(ArmoredReader::new(sealed)).map_err(failed)?;
    let list = identity.0.iter().map(|one| &**one as &dyn Identity);
    let mut reader = decryptor.decrypt(list).map_err(failed)?;
    let mut plain = Zeroizing::new(Vec::new());
    reader.read_to_end(&mut plain).map_err(|err| failed(err.into()))?;
    Ok(plain)
}

/// The bytes of a secret's file.
///
/// # Errors
/// [`AgeError::Encrypt`].
pub fn seal_secret(
    header: &SecretHeader,
    value: &SecretValue,
    to: &[AgeRecipient],
) -> Result<Vec<u8>, AgeError> {
    let path = secret_path(&header.cluster, &header.name, header.version);
    let mut sealed = Sealed { header: header.into(), value: value.expose().to_owned() };
    let plain = Zeroizing::new(serde_json::to_vec(&sealed).expect("BUG: texts and numbers serialize"));
    zeroize::Zeroize::zeroize(&mut sealed.value);
    let mut out = serde_json::to_vec(header).expect("BUG: texts and numbers serialize");
    out.push(b'\n');
    out.extend(seal(&path, &plain, to)?);
    Ok(out)
}

/// Where a secret's file stands.
pub fn secret_path(cluster: &str, name: &str, version: u64) -> String {
    format!("clusters/{cluster}/secrets/{name}/{version}.age")
}

/// The clear line of a secret's file.
///
/// # Errors
/// [`AgeError::Shape`].
pub fn read_header(path: &str, bytes: &[u8]) -> Result<(SecretHeader, usize), AgeError> {
    let shape = |problem| AgeError::Shape { path: path.to_owned(), problem };
    let end = bytes.iter().position(|b| *b == b'\n').ok_or_else(|| shape("it has no header line"))?;
    let header: SecretHeader =
        serde_json::from_slice(&bytes[..end]).map_err(|_| shape("its header line cannot be read"))?;
    if header.format != 1 {
        return Err(shape("its format is not 1: use a newer version of this tool"));
    }
    Ok((header, end + 1))
}

/// Opens a secret's file and checks that it is the one that was asked for.
///
/// # Errors
/// [`AgeError`]; nothing of the value is in it.
pub fn open_secret(
    wanted: &SecretHeader,
    bytes: &[u8],
    identity: &AgeIdentity,
) -> Result<SecretValue, AgeError> {
    let path = secret_path(&wanted.cluster, &wanted.name, wanted.version);
    let shape = |problem| AgeError::Shape { path: path.clone(), problem };
    let (header, start) = read_header(&path, bytes)?;
    if header != *wanted {
        return Err(shape("its header names another secret"));
    }
    let plain = open(&path, &bytes[start..], identity)?;
    let sealed: Sealed = serde_json::from_slice(&plain).map_err(|_| shape("its content cannot be read"))?;
    let value = SecretValue::new(sealed.value);
    let inside = sealed.header;
    let same =
        (inside.format, &inside.repository, &inside.cluster, &inside.name, inside.version, &inside.kind)
            == (
                wanted.format,
                &wanted.repository,
                &wanted.cluster,
                &wanted.name,
                wanted.version,
                &wanted.kind,
            );
    if same { Ok(value) } else { Err(shape("its content names another secret")) }
}

/// The bytes of the installation key's file.
///
/// # Errors
/// [`AgeError::Encrypt`].
pub fn seal_installation(key: &InstallationKey, to: &[AgeRecipient]) -> Result<Vec<u8>, AgeError> {
    seal(&installation_path(key.id()), key.expose(), to)
}

/// Where the installation key's file stands.
pub fn installation_path(id: &str) -> String {
    format!("installation/{id}.age")
}

/// Opens the installation key and checks that it has the id of its file.
///
/// # Errors
/// [`AgeError`].
pub fn open_installation(
    id: &str,
    bytes: &[u8],
    identity: &AgeIdentity,
) -> Result<InstallationKey, AgeError> {
    let path = installation_path(id);
    let plain = open(&path, bytes, identity)?;
    let shape = |problem| AgeError::Shape { path: path.clone(), problem };
    let bytes: [u8; 32] = plain.as_slice().try_into().map_err(|_| shape("it does not hold 32 bytes"))?;
    let key = InstallationKey::new(bytes);
    if key.id() == id { Ok(key) } else { Err(shape("the key in it has another id: somebody swapped it")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> SecretHeader {
        SecretHeader {
            format: 1,
            repository: "r".into(),
            cluster: "home".into(),
            name: "files/wifi".into(),
            version: 1,
            kind: "string".into(),
        }
    }

    fn pair() -> (AgeIdentity, Vec<AgeRecipient>) {
        use age::secrecy::ExposeSecret;
        let identity = age::x25519::Identity::generate();
        let to = recipients([("ann", identity.to_public().to_string().as_str())]).unwrap();
        let text = identity.to_string().expose_secret().to_owned();
        (AgeIdentity::parse(Path::new("id"), text.as_bytes()).unwrap(), to)
    }

    #[test]
    fn a_secret_opens_only_as_itself_and_only_for_its_recipients() {
        let ((ann, to), (bob, _)) = (pair(), pair());
        let bytes = seal_secret(&header(), &SecretValue::new("hunter2".into()), &to).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains("hunter2"));
        assert_eq!(open_secret(&header(), &bytes, &ann).unwrap().expose(), "hunter2");
        assert!(matches!(open_secret(&header(), &bytes, &bob), Err(AgeError::Decrypt { .. })));
        let moved = SecretHeader { name: "files/other".into(), ..header() };
        assert!(matches!(open_secret(&moved, &bytes, &ann), Err(AgeError::Shape { .. })));
        // a rewritten header does not help: the inside says what it is
        let end = bytes.iter().position(|b| *b == b'\n').unwrap();
        let mut forged = serde_json::to_vec(&moved).unwrap();
        forged.extend(&bytes[end..]);
        assert!(matches!(open_secret(&moved, &forged, &ann), Err(AgeError::Shape { .. })));
    }

    #[test]
    fn a_swapped_installation_key_is_refused() {
        let (ann, to) = pair();
        let (one, two) = (InstallationKey::new([1; 32]), InstallationKey::new([2; 32]));
        let bytes = seal_installation(&one, &to).unwrap();
        assert_eq!(open_installation(one.id(), &bytes, &ann).unwrap().id(), one.id());
        let swapped = open_installation(two.id(), &bytes, &ann).unwrap_err();
        assert!(swapped.to_string().contains("swapped"), "{swapped}");
    }

    #[test]
    fn only_known_recipients_and_identities_are_taken() {
        assert!(matches!(recipients([("x", "ssh-rsa AAAA")]), Err(AgeError::Recipient { .. })));
        assert!(matches!(recipients([]), Err(AgeError::NoRecipients)));
        assert!(AgeIdentity::parse(Path::new("x"), b"nothing").is_err());
    }
}
