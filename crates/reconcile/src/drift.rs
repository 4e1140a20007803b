//! Drift rules: what an observation means against what is Applied. Pure.

use bronzeward_state::model::Status;

/// The two digests of what runs on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digests {
    /// Of the exact bytes.
    pub bytes: String,
    /// Of their meaning.
    pub meaning: String,
}

/// What an observation means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// What is Applied runs.
    Same,
    /// The bytes differ and mean the same: somebody re-encoded them. No drift.
    Reencoded,
    /// Something else runs, and no record is open.
    Opens,
    /// Something else runs than when the record was opened.
    Changes,
    /// The record's own configuration still runs.
    StillOpen,
    /// What is Applied runs again.
    Returns,
    /// An operation is in flight, or nothing is Applied: an observation opens and closes nothing.
    NotJudged,
}

/// Judges an observation.
pub fn judge(status: &Status, seen: &Digests) -> Verdict {
    let Some(applied) = status.applied.as_ref().filter(|_| status.operation.is_none()) else {
        return Verdict::NotJudged;
    };
    let same = seen.meaning == applied.meaning;
    match &status.open_drift {
        None if seen.bytes == applied.bytes => Verdict::Same,
        None if same => Verdict::Reencoded,
        None => Verdict::Opens,
        Some(_) if same => Verdict::Returns,
        Some(drift) if seen.meaning == drift.meaning && seen.bytes == drift.bytes => Verdict::StillOpen,
        Some(_) => Verdict::Changes,
    }
}
