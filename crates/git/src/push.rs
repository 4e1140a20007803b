//! Push over `git-receive-pack` (protocol version 0): several refs, each with the value that it must still have.
//!
//! The old value that goes with every command is the compare-and-swap: the server checks it under its ref lock.

use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use gix_transport::Service;
use gix_transport::client::blocking_io::{ExtendedBufRead, ReadlineBufRead, Transport};
use gix_transport::client::{MessageKind, WriteMode};

use crate::error::GitError;
use crate::{Oid, Repo, pack};

/// One ref to move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefUpdate {
    /// The full name, as in `refs/heads/main`.
    pub name: String,
    /// The value that the ref must have on the remote; `None`: it must not exist.
    pub expected: Option<Oid>,
    /// The new value.
    pub new: Oid,
}

/// What a push did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushReport {
    /// How many objects were sent.
    pub objects: usize,
    /// What the remote said beside its report (a hook's words), control characters removed.
    pub messages: String,
}

/// Why a push did not happen, or is not known to have happened.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// A ref had moved: somebody was faster. Nothing was changed.
    #[error("`{name}` moved on the remote meanwhile")]
    Stale {
        /// The ref.
        name: String,
    },
    /// The remote refused (a hook, a protected branch). Nothing was changed.
    #[error("The remote refused `{name}`: {reason}")]
    Rejected {
        /// The ref.
        name: String,
        /// The remote's words, control characters removed.
        reason: String,
    },
    /// The remote cannot update several refs at once.
    #[error(
        "The remote cannot update several refs atomically: use a Git server with the `atomic` capability"
    )]
    NotAtomic,
    /// The remote could not be reached, or refused who we are, before anything was sent.
    #[error("Cannot reach `{url}`")]
    Unreachable {
        /// The remote, without credentials.
        url: String,
        /// Why.
        source: Box<gix::Error>,
    },
    /// The connection broke after the update was sent: it may or may not have happened.
    #[error("The answer of `{url}` to a push was lost: only a fetch tells whether it happened")]
    Unknown {
        /// The remote, without credentials.
        url: String,
        /// Why.
        source: std::io::Error,
    },
    /// The objects to send could not be read here.
    #[error("Cannot read what is to be pushed")]
    Local(#[from] GitError),
}

impl PushError {
    /// Did somebody else win the race for a ref?
    pub fn lost_race(&self) -> bool {
        matches!(self, PushError::Stale { .. })
    }
}

struct Advertised {
    refs: BTreeMap<String, Oid>,
    capabilities: gix_transport::client::Capabilities,
}

pub(crate) fn push(
    repo: &Repo,
    transport: &mut dyn Transport,
    url: &str,
    updates: &[RefUpdate],
) -> Result<PushReport, PushError> {
    let advertised = handshake(transport, url)?;
    for update in updates {
        if advertised.refs.get(&update.name).copied() != update.expected {
            return Err(PushError::Stale { name: update.name.clone() });
        }
    }
    if updates.len() > 1 && !advertised.capabilities.contains("atomic") {
        return Err(PushError::NotAtomic);
    }
    let tips: Vec<Oid> = updates.iter().map(|update| update.new).collect();
    let known: Vec<Oid> = advertised.refs.values().copied().collect();
    let objects = pack::missing_objects(repo, &tips, &known)?;
    let (lines, messages) = exchange(repo, transport, url, updates, &advertised, &objects)?;
    judge(updates, &lines, &messages, url)?;
    Ok(PushReport { objects: objects.len(), messages })
}

fn handshake(transport: &mut dyn Transport, url: &str) -> Result<Advertised, PushError> {
    let unreachable =
        |source: gix::Error| PushError::Unreachable { url: url.to_owned(), source: Box::new(source) };
    let mut answer = transport.handshake(Service::ReceivePack, &[]).map_err(|err| unreachable(err.into()))?;
    let mut refs = BTreeMap::new();
    if let Some(lines) = answer.refs.as_mut() {
        let mut line = String::new();
        loop {
            line.clear();
            let read =
                lines.readline_str(&mut line).map_err(|err| unreachable(gix::Error::from_error(err)))?;
            if read == 0 {
                break;
            }
            let Some((id, name)) = line.trim_end().split_once(' ') else { continue };
            let name = name.split('\0').next().unwrap_or(name);
            if name == "capabilities^{}" || name == ".have" {
                continue;
            }
            if let Ok(id) = Oid::from_hex(id.as_bytes()) {
                refs.insert(name.to_owned(), id);
            }
        }
    }
    let capabilities = answer.capabilities.clone();
    Ok(Advertised { refs, capabilities })
}

/// Sends the commands and the pack; gives the lines of the report and what the remote said beside it.
fn exchange(
    repo: &Repo,
    transport: &mut dyn Transport,
    url: &str,
    updates: &[RefUpdate],
    advertised: &Advertised,
    objects: &[Oid],
) -> Result<(Vec<String>, String), PushError> {
    let unknown = |source| PushError::Unknown { url: url.to_owned(), source };
    let sideband = advertised.capabilities.contains("side-band-64k");
    let mut request = transport
        .request(WriteMode::Binary, MessageKind::Flush, false)
        .map_err(|err| PushError::Unreachable { url: url.to_owned(), source: Box::new(err.into()) })?;
    for (index, update) in updates.iter().enumerate() {
        let old = update.expected.unwrap_or_else(|| Oid::null(update.new.kind()));
        let mut line = format!("{old} {} {}", update.new, update.name);
        if index == 0 {
            line.push_str("\0 report-status");
            if sideband {
                line.push_str(" side-band-64k");
            }
            if updates.len() > 1 {
                line.push_str(" atomic");
            }
            line.push_str(concat!(" agent=bronzeward/", env!("CARGO_PKG_VERSION")));
        }
        request.write_all(line.as_bytes()).map_err(unknown)?;
    }
    request.write_message(MessageKind::Flush).map_err(unknown)?;
    let (mut raw, mut reader) = request.into_parts();
    pack::write_pack(repo, objects, BufWriter::with_capacity(64 << 10, &mut raw)).map_err(unknown)?;
    raw.flush().map_err(unknown)?;
    // the server begins to answer when our side is closed
    drop(raw);
    read_report(&mut *reader, sideband).map_err(unknown)
}

fn read_report<'a>(
    reader: &mut (dyn ExtendedBufRead<'a> + Unpin + 'a),
    sideband: bool,
) -> std::io::Result<(Vec<String>, String)> {
    let messages = Arc::new(Mutex::new(String::new()));
    let mut lines = Vec::new();
    if sideband {
        let sink = Arc::clone(&messages);
        reader.set_progress_handler(Some(Box::new(move |_is_error, text| {
            let mut sink = sink.lock().unwrap_or_else(PoisonError::into_inner);
            // a hook may say as much as it likes; people need the first lines
            if sink.len() < 4096 {
                sink.push_str(&String::from_utf8_lossy(text));
            }
            ControlFlow::Continue(())
        })));
        let mut data = Vec::new();
        reader.read_to_end(&mut data)?;
        lines = nested_lines(&data)?;
    } else {
        let mut line = String::new();
        while reader.readline_str(&mut line)? != 0 {
            lines.push(line.trim_end().to_owned());
            line.clear();
        }
    }
    let messages = messages.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok((lines, printable(&messages)))
}

/// Inside band 1 the report is a stream of pkt-lines of its own.
fn nested_lines(mut data: &[u8]) -> std::io::Result<Vec<String>> {
    let broken =
        || std::io::Error::new(std::io::ErrorKind::InvalidData, "the report is no sequence of pkt-lines");
    let mut lines = Vec::new();
    while !data.is_empty() {
        let length = data.get(..4).and_then(|hex| std::str::from_utf8(hex).ok()).ok_or_else(broken)?;
        let length = usize::from_str_radix(length, 16).map_err(|_| broken())?;
        if length == 0 {
            break;
        }
        let line = data.get(4..length).ok_or_else(broken)?;
        lines.push(String::from_utf8_lossy(line).trim_end().to_owned());
        data = &data[length..];
    }
    Ok(lines)
}

fn judge(updates: &[RefUpdate], lines: &[String], messages: &str, url: &str) -> Result<(), PushError> {
    let unclear = |what: &str| PushError::Unknown {
        url: url.to_owned(),
        source: std::io::Error::new(std::io::ErrorKind::InvalidData, what.to_owned()),
    };
    let Some((unpack, rest)) = lines.split_first() else { return Err(unclear("there was no report")) };
    if unpack != "unpack ok" {
        let reason = printable(&format!("{unpack} {messages}"));
        return Err(PushError::Rejected {
            name: updates.first().map(|u| u.name.clone()).unwrap_or_default(),
            reason,
        });
    }
    let refused: Vec<(&str, &str)> = rest
        .iter()
        .filter_map(|line| line.strip_prefix("ng "))
        .map(|line| line.split_once(' ').unwrap_or((line, "")))
        .collect();
    // in an atomic push every other ref fails as well: the ref that lost the race says why
    if let Some((name, _)) = refused.iter().find(|(_, reason)| is_race(reason)) {
        return Err(PushError::Stale { name: (*name).to_owned() });
    }
    if let Some((name, reason)) = refused.first() {
        let reason = printable(&format!("{reason} {messages}"));
        return Err(PushError::Rejected { name: (*name).to_owned(), reason });
    }
    let done =
        updates.iter().all(|update| rest.iter().any(|line| line.strip_prefix("ok ") == Some(&update.name)));
    if done { Ok(()) } else { Err(unclear("the report does not name every ref")) }
}

fn is_race(reason: &str) -> bool {
    [
        "failed to update ref",
        "cannot lock ref",
        "fetch first",
        "non-fast-forward",
        "incorrect old value",
        "stale info",
    ]
    .iter()
    .any(|text| reason.contains(text))
}

/// One line without control characters.
fn printable(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
