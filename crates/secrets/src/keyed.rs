//! Keyed digests: what stands in Git of something that holds values.
//!
//! `HMAC-SHA-256(key, label 0x00 repository 0x00 cluster 0x00 kind 0x00 bytes)`, written
//! `hmac-sha256:<key id>:<hex>`. A plain hash of a short secret could be guessed; this one only by who has the key.

use std::fmt;

use hmac::{Hmac, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

type HmacSha256 = Hmac<Sha256>;

/// What a digest is made of; the label keeps digests of different things apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    /// A secret value.
    Value,
    /// The exact bytes on a node.
    Bytes,
    /// Our canonical encoding of what Talos would read.
    Meaning,
}

impl Label {
    fn as_str(self) -> &'static str {
        match self {
            Label::Value => "bronzeward/v1/value",
            Label::Bytes => "bronzeward/v1/bytes",
            Label::Meaning => "bronzeward/v1/meaning",
        }
    }
}

/// The installation key: 32 random bytes under which all keyed digests are made.
#[derive(Clone)]
pub struct InstallationKey {
    key: Zeroizing<[u8; 32]>,
    id: String,
}

impl fmt::Debug for InstallationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InstallationKey").field(&self.id).finish()
    }
}

/// A keyed digest as it stands in files: `hmac-sha256:<key id>:<hex>`.
pub type KeyedDigest = String;

impl InstallationKey {
    /// Takes the bytes over.
    pub fn new(bytes: [u8; 32]) -> InstallationKey {
        let key = Zeroizing::new(bytes);
        let full = hex::encode(mac(&key, &[b"bronzeward key id"]));
        InstallationKey { key, id: format!("k{}", &full[..16]) }
    }

    /// `k` and sixteen hex digits.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The key itself, to be encrypted to its recipients.
    pub fn expose(&self) -> &[u8; 32] {
        &self.key
    }

    /// The digest of bytes in a repository and cluster; `kind` is the secret's kind, or empty.
    pub fn digest(
        &self,
        label: Label,
        repository: &str,
        cluster: &str,
        kind: &str,
        bytes: &[u8],
    ) -> KeyedDigest {
        let parts: [&[u8]; 9] = [
            label.as_str().as_bytes(),
            &[0],
            repository.as_bytes(),
            &[0],
            cluster.as_bytes(),
            &[0],
            kind.as_bytes(),
            &[0],
            bytes,
        ];
        format!("hmac-sha256:{}:{}", self.id, hex::encode(mac(&self.key, &parts)))
    }
}

fn mac(key: &[u8; 32], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = HmacSha256::new_from_slice(key).expect("BUG: HMAC takes keys of any length");
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_and_the_digest_depend_on_the_key_and_on_everything_named() {
        let (one, two) = (InstallationKey::new([1; 32]), InstallationKey::new([2; 32]));
        assert_eq!(one.id().len(), 17);
        assert_ne!(one.id(), two.id());
        let base = one.digest(Label::Value, "r", "c", "string", b"v");
        assert_eq!(base, one.digest(Label::Value, "r", "c", "string", b"v"));
        for other in [
            two.digest(Label::Value, "r", "c", "string", b"v"),
            one.digest(Label::Bytes, "r", "c", "string", b"v"),
            one.digest(Label::Value, "rc", "", "string", b"v"),
            one.digest(Label::Value, "r", "c", "", b"v"),
            one.digest(Label::Value, "r", "c", "string", b"w"),
        ] {
            assert_ne!(base, other);
        }
        assert!(!format!("{one:?}").contains("1, 1"));
    }
}
