//! Whether `main` still says what was approved, commit by commit.

use bronzeward_compile::plan::{Difference, Entry, difference};
use bronzeward_state::model::EntryState;

/// What became of an entry at one commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Followed {
    /// Where it stands now.
    pub state: EntryState,
    /// Why, in a few words.
    pub detail: Option<String>,
    /// Was it equal at this commit?
    pub matched: bool,
}

/// Compares an approved entry with the one recomputed at a commit (`None`: nothing would be done there).
///
/// Equal means approved. One that no commit was equal to yet waits. One that was equal lapses for good when the tree
/// or the turn says something else, and is held while only the state does.
pub fn follow(state: EntryState, approved: &Entry, now: Option<&Entry>) -> Followed {
    let keep = |detail| Followed { state, detail, matched: false };
    if !state.is_open() {
        return keep(None);
    }
    let difference = match now {
        None => Some(Difference::Tree("nothing to do")),
        Some(now) => difference(approved, now),
    };
    let Some(difference) = difference else {
        return Followed { state: EntryState::Approved, detail: None, matched: true };
    };
    let stale = Some(format!("stale: {}", difference.field()));
    match (state, difference) {
        (EntryState::Waiting, _) => keep(stale),
        (_, Difference::Tree(field)) => {
            Followed { state: EntryState::Lapsed, detail: Some(format!("lapsed: {field}")), matched: false }
        }
        (_, Difference::State(field)) => {
            Followed { state: EntryState::Held, detail: Some(held(field, now)), matched: false }
        }
    }
}

fn held(field: &str, now: Option<&Entry>) -> String {
    let drift = now.and_then(Entry::as_machine).and_then(|entry| entry.overwrites);
    match (field, drift) {
        ("overwrites" | "expects", Some(overwrites)) => format!("held: drift {}", overwrites.drift),
        _ => format!("held: {field}"),
    }
}
