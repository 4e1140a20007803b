//! An approval: a statement signed by an approver's SSH key, carried in the trailers of a commit message.
//!
//! It is matched by its entries, not by its place; whoever carries it proves nothing.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bronzeward_git::sshsig::{self, SigError};
use bronzeward_git::trailers::{lines_with_prefix, trailers};
use jiff::Timestamp;
use sha2::{Digest, Sha256};
use ssh_key::public::KeyData;

/// The namespace in which approvals are signed.
pub const NAMESPACE: &str = "bronzeward-approval";

/// What every line of an approval begins with.
pub const PREFIX: &str = "Bronzeward-";

/// Where the approver stood: shown and compared, and where the gate begins; authorises nothing by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Basis {
    /// The reviewed head.
    pub head: String,
    /// The tip of main.
    pub main: String,
    /// The state commit.
    pub state: String,
}

/// The statement that is signed, without the signatures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// `sha256:…` of `plan.json`.
    pub plan: String,
    /// Where the approver stood.
    pub basis: Basis,
    /// Until when it lives.
    pub expires: Timestamp,
}

/// The place in which a statement counts.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The repository's id.
    pub repository: &'a str,
    /// The shard.
    pub shard: &'a str,
    /// The epoch.
    pub epoch: &'a str,
}

impl Statement {
    /// The five lines before the signature, for one approver.
    fn lines(&self, approver: &str) -> String {
        let Basis { head, main, state } = &self.basis;
        format!(
            "Bronzeward-Format: 1\nBronzeward-Plan: {}\nBronzeward-Basis: {head} {main} {state}\n\
             Bronzeward-Expires: {}\nBronzeward-Approved-By: {approver}\n",
            self.plan, self.expires,
        )
    }

    /// The exact bytes that an approver signs.
    pub fn signed_bytes(&self, place: Place<'_>, approver: &str) -> Vec<u8> {
        let Place { repository, shard, epoch } = place;
        format!("bronzeward approval {repository} {shard} {epoch}\n{}", self.lines(approver)).into_bytes()
    }

    /// The trailers of an approval by one approver.
    ///
    /// # Errors
    /// [`SigError`] when the signature cannot be read.
    pub fn to_trailers(&self, approver: &str, armoured: &str) -> Result<String, SigError> {
        let blob = STANDARD.encode(sshsig::armour_to_blob(armoured)?);
        Ok(format!("{}Bronzeward-Signature: {blob}\n", self.lines(approver)))
    }
}

/// The id of an approval: the first 16 hex digits of the SHA-256 of its signed bytes.
pub fn id_of(signed_bytes: &[u8]) -> String {
    hex::encode(&Sha256::digest(signed_bytes)[..8])
}

/// Why a message's approval is refused.
#[derive(Debug, thiserror::Error)]
pub enum ApprovalError {
    /// A `Bronzeward-` line outside the last paragraph.
    #[error("Line {0} begins with `Bronzeward-` and stands outside the trailers")]
    Stray(usize),
    /// A trailer that is unknown, repeated, or out of order.
    #[error("The trailer `{0}` is unknown, repeated or out of its order")]
    Trailer(String),
    /// A value that cannot be read.
    #[error("The value of `{0}` cannot be read")]
    Value(&'static str),
    /// A format of a newer version.
    #[error("The approval has a format that this version does not know")]
    Format,
    /// A signature that is none, or does not fit the statement in this repository, shard and epoch.
    #[error("The signature of `{approver}` does not fit this statement, repository, shard and epoch")]
    Signature {
        /// Whom it names.
        approver: String,
        /// Why.
        source: SigError,
    },
}

/// An approval as it was found, its signatures not checked yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    /// What was signed.
    pub statement: Statement,
    /// Approvers and the blobs of their signatures.
    pub signatures: Vec<(String, Vec<u8>)>,
    /// The trailers as they stood.
    pub text: String,
}

/// A signature that fits.
#[derive(Clone, Debug)]
pub struct Signed {
    /// The approval's id.
    pub id: String,
    /// Whom it names: a principal, or `root`.
    pub approver: String,
    /// The key that signed.
    pub key: KeyData,
}

impl Approval {
    /// Reads the approval of a commit message, `None` when the message says nothing of the kind.
    ///
    /// # Errors
    /// [`ApprovalError`]: one wrong line refuses the whole approval.
    pub fn parse(message: &str) -> Result<Option<Approval>, ApprovalError> {
        let all = lines_with_prefix(message, PREFIX);
        if all.is_empty() {
            return Ok(None);
        }
        let list = trailers(message);
        let total = message.trim_end_matches('\n').lines().count();
        if let Some((line, _)) = all.iter().find(|(line, _)| *line <= total.saturating_sub(list.len())) {
            return Err(ApprovalError::Stray(*line));
        }
        let ours: Vec<(&str, &str)> = list
            .into_iter()
            .filter(|(token, _)| {
                token.get(..PREFIX.len()).is_some_and(|head| head.eq_ignore_ascii_case(PREFIX))
            })
            .collect();
        let mut rest = ours.into_iter();
        let mut next = |wanted: &'static str| match rest.next() {
            Some((token, value)) if token == wanted => Ok(value),
            Some((token, _)) => Err(ApprovalError::Trailer(token.to_owned())),
            None => Err(ApprovalError::Trailer(wanted.to_owned())),
        };
        if next("Bronzeward-Format")? != "1" {
            return Err(ApprovalError::Format);
        }
        let plan = digest(next("Bronzeward-Plan")?)?;
        let basis = basis(next("Bronzeward-Basis")?)?;
        let expires = next("Bronzeward-Expires")?;
        let expires: Timestamp = expires
            .parse()
            .ok()
            .filter(|time: &Timestamp| time.to_string() == expires)
            .ok_or(ApprovalError::Value("Bronzeward-Expires"))?;
        let mut signatures = Vec::new();
        loop {
            let approver = next("Bronzeward-Approved-By")?.to_owned();
            let blob = next("Bronzeward-Signature")?;
            let blob = STANDARD.decode(blob).map_err(|_| ApprovalError::Value("Bronzeward-Signature"))?;
            if signatures.iter().any(|(other, _)| *other == approver) {
                return Err(ApprovalError::Trailer("Bronzeward-Approved-By".to_owned()));
            }
            signatures.push((approver, blob));
            // the iterator is asked again only while pairs are left
            if all.len() == 4 + 2 * signatures.len() {
                break;
            }
            if all.len() < 4 + 2 * signatures.len() {
                return Err(ApprovalError::Trailer("Bronzeward-Signature".to_owned()));
            }
        }
        let text = all.iter().map(|(_, line)| format!("{line}\n")).collect();
        Ok(Some(Approval { statement: Statement { plan, basis, expires }, signatures, text }))
    }

    /// Checks every signature in its place.
    ///
    /// # Errors
    /// [`ApprovalError::Signature`] for the first that does not fit.
    pub fn verify(&self, place: Place<'_>) -> Result<Vec<Signed>, ApprovalError> {
        let check = |(approver, blob): &(String, Vec<u8>)| {
            let payload = self.statement.signed_bytes(place, approver);
            let key = sshsig::verify_blob(blob, NAMESPACE, &payload)
                .map_err(|source| ApprovalError::Signature { approver: approver.clone(), source })?;
            Ok(Signed { id: id_of(&payload), approver: approver.clone(), key })
        };
        self.signatures.iter().map(check).collect()
    }

    /// The ids that the approval has in a place, whether its signatures fit or not.
    pub fn ids(&self, place: Place<'_>) -> Vec<String> {
        let id = |(approver, _): &(String, Vec<u8>)| id_of(&self.statement.signed_bytes(place, approver));
        self.signatures.iter().map(id).collect()
    }

    /// Reads back what was kept in the state.
    ///
    /// # Errors
    /// As [`Approval::parse`].
    pub fn parse_kept(text: &str) -> Result<Option<Approval>, ApprovalError> {
        Approval::parse(&format!("kept\n\n{text}"))
    }
}

fn digest(text: &str) -> Result<String, ApprovalError> {
    let hex = text.strip_prefix("sha256:").unwrap_or_default();
    let sound = hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    if sound { Ok(text.to_owned()) } else { Err(ApprovalError::Value("Bronzeward-Plan")) }
}

fn basis(text: &str) -> Result<Basis, ApprovalError> {
    let parts: Vec<&str> = text.split(' ').collect();
    let sound = |part: &str| {
        part.len() == 40 && part.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    match parts[..] {
        [head, main, state] if parts.iter().all(|part| sound(part)) => {
            Ok(Basis { head: head.to_owned(), main: main.to_owned(), state: state.to_owned() })
        }
        _ => Err(ApprovalError::Value("Bronzeward-Basis")),
    }
}
