//! Small words that several rooms use: details of log entries, commits, times and versions.

use std::time::Duration;

use bronzeward_git::Oid;
use jiff::{SignedDuration, Timestamp};
use serde_json::Map;

/// Details of a log entry.
pub(crate) fn details<const N: usize>(
    pairs: [(&str, serde_json::Value); N],
) -> Map<String, serde_json::Value> {
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// A commit for people.
pub(crate) fn short(commit: Oid) -> String {
    commit.to_string().chars().take(10).collect()
}

pub(crate) fn later(from: Timestamp, by: Duration) -> Timestamp {
    let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
    from.checked_add(by).unwrap_or(Timestamp::MAX)
}

pub(crate) fn until(now: Timestamp, then: Timestamp) -> Duration {
    Duration::try_from(then.duration_since(now)).unwrap_or(Duration::ZERO)
}

/// `v1.13.9` or `v1.13` as (1, 13).
pub(crate) fn minor(version: &str) -> (u64, u64) {
    let mut parts = version.trim_start_matches('v').split(['.', '-']).map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}
