//! The world's parts with faults on order: a clock that is moved by hand, nodes that hold bytes, a remote that loses
//! answers. A crash is an unwinding that no message belongs to: the engine is dropped where it stood.

use std::collections::{BTreeMap, VecDeque};
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bronzeward_git::remote::FetchError;
use bronzeward_git::{Fetched, GitRemote, PushError, PushReport, RefUpdate, Remote, RemoteOptions, Repo};
use bronzeward_reconcile::ports::{Clock, NodeAccess, NodeAddress, Nodes, Seen, Sent, Unseen, Window};
use jiff::{SignedDuration, Timestamp};
use zeroize::Zeroizing;

/// What a crash unwinds with.
pub struct Crash;

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Both clocks, moved by hand.
#[derive(Clone)]
pub struct FakeClock(Arc<Mutex<(Timestamp, Duration)>>);

impl FakeClock {
    pub fn new() -> FakeClock {
        FakeClock(Arc::new(Mutex::new(("2026-12-01T12:00:00Z".parse().unwrap(), Duration::ZERO))))
    }

    pub fn advance(&self, by: Duration) {
        let mut clock = locked(&self.0);
        clock.0 += SignedDuration::try_from(by).unwrap();
        clock.1 += by;
    }
}

impl Clock for FakeClock {
    fn now(&self) -> Timestamp {
        locked(&self.0).0
    }

    fn monotonic(&self) -> Duration {
        locked(&self.0).1
    }
}

/// Counts every step that touches the world, and crashes at the one that was chosen.
#[derive(Clone, Default)]
pub struct Steps(Arc<Mutex<(Vec<String>, Option<usize>)>>);

impl Steps {
    pub fn crash_at(&self, step: usize) {
        *locked(&self.0) = (Vec::new(), Some(step));
    }

    pub fn count_again(&self) {
        *locked(&self.0) = (Vec::new(), None);
    }

    pub fn names(&self) -> Vec<String> {
        locked(&self.0).0.clone()
    }

    fn reach(&self, name: &str) {
        let crash = {
            let mut steps = locked(&self.0);
            steps.0.push(name.to_owned());
            let hit = steps.1 == Some(steps.0.len());
            if hit {
                steps.1 = None;
            }
            hit
        };
        if crash {
            resume_unwind(Box::new(Crash));
        }
    }
}

/// A fault of one send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendFault {
    /// No connection.
    Unreachable,
    /// The node refuses it.
    Reject,
    /// Busy with another.
    Busy,
    /// It lands, and the answer is lost.
    LostLanded,
    /// It does not land, and the answer is lost.
    LostGone,
    /// It is accepted, and something else runs afterwards.
    AcceptedOther,
    /// It is accepted, and nothing changes.
    AcceptedNothing,
}

/// One fake node.
#[derive(Clone)]
pub struct FakeNode {
    pub id: String,
    pub cluster: String,
    pub role: &'static str,
    pub version: String,
    pub running: bool,
    pub ready: bool,
    pub pending: bool,
    pub reachable: bool,
    pub bytes: Vec<u8>,
    pub faults: VecDeque<SendFault>,
}

/// What was sent where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Send {
    pub endpoint: String,
    pub bytes: Vec<u8>,
}

#[derive(Default)]
struct NodesInner {
    nodes: BTreeMap<String, FakeNode>,
    sends: Vec<Send>,
    dialled: std::collections::BTreeSet<String>,
    after_send: Option<Box<dyn FnOnce() + std::marker::Send>>,
    on_read: Option<Box<dyn Fn() + std::marker::Send>>,
}

/// The nodes by endpoint.
#[derive(Clone, Default)]
pub struct FakeNodes {
    inner: Arc<Mutex<NodesInner>>,
    steps: Steps,
}

impl FakeNodes {
    pub fn new(steps: &Steps) -> FakeNodes {
        FakeNodes { inner: Arc::default(), steps: steps.clone() }
    }

    pub fn put(&self, endpoint: &str, node: FakeNode) {
        locked(&self.inner).nodes.insert(endpoint.to_owned(), node);
    }

    pub fn take(&self, endpoint: &str) -> FakeNode {
        locked(&self.inner).nodes.remove(endpoint).unwrap()
    }

    pub fn with<T>(&self, endpoint: &str, change: impl FnOnce(&mut FakeNode) -> T) -> T {
        change(locked(&self.inner).nodes.get_mut(endpoint).unwrap())
    }

    pub fn bytes(&self, endpoint: &str) -> Vec<u8> {
        self.with(endpoint, |node| node.bytes.clone())
    }

    pub fn sends(&self) -> Vec<Send> {
        locked(&self.inner).sends.clone()
    }

    /// Something happens at every read, while the node is asked.
    pub fn on_read(&self, what: impl Fn() + std::marker::Send + 'static) {
        locked(&self.inner).on_read = Some(Box::new(what));
    }

    /// Reads are as quick as they were.
    pub fn quick(&self) {
        locked(&self.inner).on_read = None;
    }

    /// Something happens right after the next send.
    pub fn after_send(&self, what: impl FnOnce() + std::marker::Send + 'static) {
        locked(&self.inner).after_send = Some(Box::new(what));
    }

    pub fn dialled(&self, endpoint: &str) -> bool {
        locked(&self.inner).dialled.contains(endpoint)
    }
}

impl Nodes for FakeNodes {
    fn read(&self, at: &NodeAddress, _: &NodeAccess) -> Result<Seen, Unseen> {
        self.steps.reach("read");
        let mut inner = locked(&self.inner);
        inner.dialled.insert(at.endpoint.clone());
        if let Some(what) = &inner.on_read {
            what();
        }
        let node = inner.nodes.get(&at.endpoint).filter(|node| node.reachable);
        let node = node.ok_or_else(|| Unseen("connection refused".into()))?;
        Ok(Seen {
            node_id: Some(node.id.clone()),
            uuid: None,
            cluster_id: Some(node.cluster.clone()),
            role: Some(node.role),
            version: node.version.clone(),
            running: node.running,
            ready: node.ready,
            active: Zeroizing::new(node.bytes.clone()),
            pending: node.pending,
        })
    }

    fn send(&self, at: &NodeAddress, access: &NodeAccess, bytes: &[u8], window: Window) -> Sent {
        assert!(window.begin <= window.answer, "nothing leaves after its own deadline");
        assert_eq!(access.0.expose(), crate::world::TALOSCONFIG, "the access of the cluster is used");
        self.steps.reach("before-send");
        let sent = {
            let mut inner = locked(&self.inner);
            inner.sends.push(Send { endpoint: at.endpoint.clone(), bytes: bytes.to_vec() });
            let Some(node) = inner.nodes.get_mut(&at.endpoint).filter(|node| node.reachable) else {
                inner.sends.pop();
                return Sent::NotSent("connection refused".into());
            };
            match node.faults.pop_front() {
                None => {
                    node.bytes = bytes.to_vec();
                    Sent::Accepted
                }
                Some(SendFault::Unreachable) => {
                    inner.sends.pop();
                    Sent::NotSent("connection refused".into())
                }
                Some(SendFault::Reject) => Sent::Rejected("the node's own validation refuses it"),
                Some(SendFault::Busy) => Sent::Busy,
                Some(SendFault::LostLanded) => {
                    node.bytes = bytes.to_vec();
                    Sent::Lost("the answer did not come".into())
                }
                Some(SendFault::LostGone) => Sent::Lost("the answer did not come".into()),
                Some(SendFault::AcceptedOther) => {
                    let text = String::from_utf8_lossy(bytes);
                    node.bytes = text.replace("rack: r", "rack: x").into_bytes();
                    Sent::Accepted
                }
                Some(SendFault::AcceptedNothing) => Sent::Accepted,
            }
        };
        let after = locked(&self.inner).after_send.take();
        if let Some(after) = after {
            after();
        }
        self.steps.reach("after-send");
        sent
    }
}

/// A fault of one push of state.
pub enum PushFault {
    /// It lands, and the answer is lost.
    LostLanded,
    /// It does not land, and the answer is lost.
    LostGone,
    /// It takes this long.
    Slow(Duration),
    /// Somebody else pushes first.
    Race(Box<dyn FnOnce() + std::marker::Send>),
    /// Somebody else pushes right after it.
    Followed(Box<dyn FnOnce() + std::marker::Send>),
}

#[derive(Default)]
struct RemoteInner {
    down: bool,
    state_down: bool,
    push: VecDeque<PushFault>,
}

/// Faults of both remotes.
#[derive(Clone, Default)]
pub struct Faults(Arc<Mutex<RemoteInner>>);

impl Faults {
    pub fn down(&self, down: bool) {
        locked(&self.0).down = down;
    }

    pub fn state_down(&self, down: bool) {
        locked(&self.0).state_down = down;
    }

    pub fn push(&self, fault: PushFault) {
        locked(&self.0).push.push_back(fault);
    }

    pub fn heal(&self) {
        *locked(&self.0) = RemoteInner::default();
    }
}

/// How objects reach the remote.
enum Way {
    /// As in production, over `file://`.
    Git(Box<GitRemote>),
    /// Both repositories share one folder of objects, and only refs move: fast.
    Shared(Box<Repo>),
}

/// A remote with faults.
pub struct FaultyRemote {
    way: Way,
    faults: Faults,
    steps: Steps,
    clock: FakeClock,
    is_state: bool,
}

impl FaultyRemote {
    pub fn git(url: &str, faults: &Faults, steps: &Steps, clock: &FakeClock, is_state: bool) -> FaultyRemote {
        let way = Way::Git(Box::new(GitRemote::new(url, RemoteOptions::default()).unwrap()));
        FaultyRemote { way, faults: faults.clone(), steps: steps.clone(), clock: clock.clone(), is_state }
    }

    pub fn shared(
        repo: &Repo,
        faults: &Faults,
        steps: &Steps,
        clock: &FakeClock,
        is_state: bool,
    ) -> FaultyRemote {
        let way = Way::Shared(Box::new(repo.clone()));
        FaultyRemote { way, faults: faults.clone(), steps: steps.clone(), clock: clock.clone(), is_state }
    }

    fn is_down(&self) -> bool {
        let faults = locked(&self.faults.0);
        faults.down || (self.is_state && faults.state_down)
    }

    fn deliver(&self, repo: &Repo, updates: &[RefUpdate]) -> Result<PushReport, PushError> {
        match &self.way {
            Way::Git(remote) => remote.push(repo, updates),
            Way::Shared(remote) => {
                for update in updates {
                    if remote.read_ref(&update.name).unwrap() != update.expected {
                        return Err(PushError::Stale { name: update.name.clone() });
                    }
                }
                for update in updates {
                    remote.set_ref(&update.name, update.new, update.expected).unwrap();
                }
                Ok(PushReport::default())
            }
        }
    }

    fn lost(&self) -> PushError {
        PushError::Unknown { url: "test".into(), source: std::io::Error::other("the connection broke") }
    }
}

impl Remote for FaultyRemote {
    fn fetch(&self, repo: &Repo, refspecs: &[&str]) -> Result<Fetched, FetchError> {
        self.steps.reach("fetch");
        if self.is_down() {
            return Err(FetchError::Url { url: "the remote is gone".into() });
        }
        match &self.way {
            Way::Git(remote) => remote.fetch(repo, refspecs),
            Way::Shared(remote) => {
                let mut fetched = Fetched::default();
                for spec in refspecs {
                    let from = spec.trim_start_matches('+').split(':').next().unwrap();
                    let found = match from.strip_suffix('*') {
                        Some(prefix) => remote.refs_below(prefix).unwrap(),
                        None => remote
                            .read_ref(from)
                            .unwrap()
                            .map(|id| (from.to_owned(), id))
                            .into_iter()
                            .collect(),
                    };
                    fetched.refs.extend(found);
                }
                Ok(fetched)
            }
        }
    }

    fn push(&self, repo: &Repo, updates: &[RefUpdate]) -> Result<PushReport, PushError> {
        self.steps.reach("before-push");
        if self.is_down() {
            let name = updates[0].name.clone();
            return Err(PushError::Rejected { name, reason: "the remote is gone".into() });
        }
        let fault = locked(&self.faults.0).push.pop_front();
        let done = match fault {
            None => self.deliver(repo, updates),
            Some(PushFault::LostLanded) => self.deliver(repo, updates).and_then(|_| Err(self.lost())),
            Some(PushFault::LostGone) => Err(self.lost()),
            Some(PushFault::Slow(by)) => {
                self.clock.advance(by);
                self.deliver(repo, updates)
            }
            Some(PushFault::Race(other)) => {
                other();
                self.deliver(repo, updates)
            }
            Some(PushFault::Followed(other)) => {
                let done = self.deliver(repo, updates);
                other();
                done
            }
        };
        self.steps.reach("after-push");
        done
    }

    fn url(&self) -> &str {
        "test"
    }
}
