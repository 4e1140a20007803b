//! SSH signatures (OpenSSH's PROTOCOL.sshsig): verifying them against their own key.
//!
//! Whether that key may sign is asked elsewhere ([`crate::allowed_signers`]). Signatures made with an OpenSSH
//! certificate are refused by name: principals here are literal keys.

use signature::Verifier;
use ssh_key::public::KeyData;
use ssh_key::{HashAlg, SshSig};

/// The namespace in which Git signs commits.
pub const GIT_NAMESPACE: &str = "git";

/// Why a signature does not count.
#[derive(Debug, thiserror::Error)]
pub enum SigError {
    /// The armour or the blob cannot be read.
    #[error("The signature is not a readable SSH signature")]
    Malformed(#[source] ssh_key::Error),
    /// The signature was made for another purpose.
    #[error("The signature was made in the namespace `{found}`, not `{expected}`")]
    Namespace {
        /// What was needed.
        expected: String,
        /// What the signature says.
        found: String,
    },
    /// The signature was made with a certificate.
    #[error("The signature was made with an SSH certificate: sign with the key itself")]
    Certificate,
    /// The signature does not fit the bytes.
    #[error("The signature does not fit the signed bytes")]
    Mismatch,
}

/// Checks an armoured signature and gives the key that made it.
///
/// # Errors
/// [`SigError`] when it is unreadable, made for another namespace, or does not fit.
pub fn verify_armoured(armoured: &str, namespace: &str, payload: &[u8]) -> Result<KeyData, SigError> {
    let signature = SshSig::from_pem(armoured.trim_start()).map_err(SigError::Malformed)?;
    verify(&signature, namespace, payload)
}

/// Checks the binary form of a signature (what stands between the armour's lines) and gives its key.
///
/// # Errors
/// As [`verify_armoured`].
pub fn verify_blob(blob: &[u8], namespace: &str, payload: &[u8]) -> Result<KeyData, SigError> {
    verify(&decode(blob)?, namespace, payload)
}

fn decode(blob: &[u8]) -> Result<SshSig, SigError> {
    // trailing bytes would give one statement many spellings
    let mut reader = blob;
    let signature =
        <SshSig as ssh_key::encoding::Decode>::decode(&mut reader).map_err(SigError::Malformed)?;
    if reader.is_empty() { Ok(signature) } else { Err(SigError::Malformed(ssh_key::Error::FormatEncoding)) }
}

/// The binary form of an armoured signature, for one line of base64 in a trailer.
///
/// # Errors
/// [`SigError::Malformed`].
pub fn armour_to_blob(armoured: &str) -> Result<Vec<u8>, SigError> {
    let signature = SshSig::from_pem(armoured).map_err(SigError::Malformed)?;
    let mut blob = Vec::new();
    ssh_key::encoding::Encode::encode(&signature, &mut blob)
        .map_err(|err| SigError::Malformed(err.into()))?;
    Ok(blob)
}

/// The armoured form of a binary signature, as `ssh-keygen -Y verify` reads it.
///
/// # Errors
/// [`SigError::Malformed`].
pub fn blob_to_armour(blob: &[u8]) -> Result<String, SigError> {
    decode(blob)?.to_pem(ssh_key::LineEnding::LF).map_err(SigError::Malformed)
}

fn verify(signature: &SshSig, namespace: &str, payload: &[u8]) -> Result<KeyData, SigError> {
    if signature.namespace() != namespace {
        let (expected, found) = (namespace.to_owned(), signature.namespace().to_owned());
        return Err(SigError::Namespace { expected, found });
    }
    let key = signature.public_key();
    if matches!(key, KeyData::Certificate(_)) {
        return Err(SigError::Certificate);
    }
    // as `ssh-keygen`: nothing weaker than SHA-256 over the payload
    if !matches!(signature.hash_alg(), HashAlg::Sha256 | HashAlg::Sha512) {
        return Err(SigError::Mismatch);
    }
    let signed =
        SshSig::signed_data(namespace, signature.hash_alg(), payload).map_err(SigError::Malformed)?;
    key.verify(&signed, signature.signature()).map_err(|_| SigError::Mismatch)?;
    Ok(key.clone())
}
