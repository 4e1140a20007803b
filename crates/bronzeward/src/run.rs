//! `run`: the reconciler as a long-running process.
//!
//! The engine has a thread of its own and does one thing at a time. It is woken by watches on nodes, by the poll of
//! the remotes, and by what it itself waits for; between ticks it holds nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bronzeward_endpoint::{Machine, Page, Shared};
use bronzeward_git::sign::{KeySigner, parse_public};
use bronzeward_git::{GitRemote, RemoteOptions};
use bronzeward_reconcile::disk::Disk;
use bronzeward_reconcile::nodes::NetworkNodes;
use bronzeward_reconcile::{Due, Engine, Outcome, Setup, Trouble, WatchTarget, World};
use bronzeward_secrets::AgeIdentity;
use jiff::Timestamp;
use talos_client::{ConfigEvent, Deadlines, Dial, Dialer, Endpoint};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::cli::{Cli, Run};
use crate::clock::SystemClock;
use crate::commands::status::word;
use crate::exit::{Exit, refuse};
use crate::output;
use crate::settings::{Settings, host};

/// Why the engine wakes up.
enum Wake {
    /// A node's configuration may have changed.
    Machine(String, String),
    /// The process is to end.
    Stop,
}

/// `run`.
pub fn run(cli: &Cli, args: &Run) -> Result<Exit> {
    logging();
    let settings = Settings::read(&Settings::path(cli)?)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let (wake, woken) = mpsc::channel();
    let stop = Arc::new(AtomicBool::new(false));
    let shared = Shared::default();
    if !args.once {
        let listener = runtime.block_on(listen(&settings))?;
        output::line(&format!("listening on {}", listener.local_addr()?));
        runtime.spawn(serve(listener, shared.clone(), wake.clone(), Arc::clone(&stop)));
    }
    let parts =
        Parts { settings, runtime: runtime.handle().clone(), wake, woken, stop, shared, once: args.once };
    // the engine blocks: it lives on this thread, the runtime's own threads carry the network
    let result = parts.work();
    runtime.shutdown_timeout(Duration::from_secs(2));
    result
}

#[allow(clippy::disallowed_methods, reason = "the log's level is a setting of the process")]
fn logging() {
    let filter = std::env::var("BRONZEWARD_LOG").unwrap_or_else(|_| "info".to_owned());
    let _ = tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::new(filter))
        .with_writer(std::io::stderr)
        .with_target(false)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .try_init();
}

async fn listen(settings: &Settings) -> Result<TcpListener> {
    let address = &settings.listen.address;
    let parsed: std::net::SocketAddr =
        address.parse().map_err(|_| refuse(format!("`listen.address` is no address and port: {address}")))?;
    if !parsed.ip().is_loopback() {
        return Err(refuse("`listen.address` is not on loopback: tokens and TLS are not supported yet"));
    }
    TcpListener::bind(parsed).await.with_context(|| format!("Cannot listen on {address}"))
}

async fn serve(listener: TcpListener, shared: Shared, wake: Sender<Wake>, stop: Arc<AtomicBool>) {
    let ended = async move {
        signals().await;
        stop.store(true, Ordering::Relaxed);
        let _ = wake.send(Wake::Stop);
    };
    if let Err(err) = bronzeward_endpoint::serve(listener, shared, ended).await {
        tracing::error!("the endpoint ended: {err}");
    }
}

async fn signals() {
    let terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate());
    match terminate {
        Ok(mut terminate) => {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
        }
        Err(_) => {
            let _ = tokio::signal::ctrl_c().await;
        }
    }
}

struct Parts {
    settings: Settings,
    runtime: tokio::runtime::Handle,
    wake: Sender<Wake>,
    woken: Receiver<Wake>,
    stop: Arc<AtomicBool>,
    shared: Shared,
    once: bool,
}

impl Parts {
    fn work(self) -> Result<Exit> {
        let mut engine = open(&self.settings, &self.runtime)?;
        let mut watches = Watches::new(&self.runtime, self.dialer(), self.wake.clone());
        let poll = self.settings.repository.poll.as_duration();
        let sweep = self.settings.watch.sweep.as_duration();
        let mut swept: Option<Instant> = None;
        let mut due = Due::default();
        let mut failures: u32 = 0;
        while !self.stop.load(Ordering::Relaxed) {
            due.sweep = swept.is_none_or(|at| at.elapsed() >= sweep);
            let result = engine.tick(&due);
            self.publish(&engine, &result);
            let mut wait = poll;
            match result {
                Ok(outcome) => {
                    failures = 0;
                    if due.sweep {
                        swept = Some(Instant::now());
                    }
                    if self.once {
                        return Ok(Exit::Fine);
                    }
                    wait = wait.min(outcome.again_in.unwrap_or(poll));
                    due = Due::default();
                    // what cannot be told now keeps the watches that run
                    if let Ok(targets) = engine.watch_targets() {
                        watches.set(targets);
                    }
                }
                Err(trouble) => {
                    if let Some(end) = self.fatal(&trouble) {
                        return Err(end);
                    }
                    failures = failures.saturating_add(1);
                    wait = wait.min(Duration::from_millis(500) * 2u32.saturating_pow(failures.min(6)));
                }
            }
            self.sleep(wait, &mut due);
        }
        tracing::info!("stopping; what is in flight is settled by the next start");
        Ok(Exit::Fine)
    }

    /// A process that does not own the shard ends; every other trouble is shown and tried again.
    fn fatal(&self, trouble: &Trouble) -> Option<anyhow::Error> {
        match trouble {
            Trouble::Halt { code: code @ ("not-the-owner" | "fenced"), message } => {
                Some(refuse(format!("{code}: {message}")))
            }
            Trouble::Halt { code, message } => {
                tracing::error!("{code}: {message}");
                self.once.then(|| refuse(format!("{code}: {message}")))
            }
            Trouble::Retry(message) => {
                tracing::warn!("{message}");
                self.once.then(|| anyhow::anyhow!("{message}"))
            }
        }
    }

    /// Waits, and collects which machines are due.
    fn sleep(&self, wait: Duration, due: &mut Due) {
        if let Ok(Wake::Machine(cluster, machine)) = self.woken.recv_timeout(wait) {
            due.machines.insert((cluster, machine));
            // what came together is looked at together
            while let Ok(Wake::Machine(cluster, machine)) = self.woken.try_recv() {
                due.machines.insert((cluster, machine));
            }
        }
    }

    fn dialer(&self) -> Dialer {
        dialer(&self.settings)
    }

    fn publish(&self, engine: &Engine, result: &Result<Outcome, Trouble>) {
        let mut page = Page { at: Some(Timestamp::now().to_string()), ..Page::default() };
        let outcome = match result {
            Ok(outcome) => {
                page.ready = true;
                page.notices = outcome.notices.iter().cloned().collect();
                for (subject, why) in &outcome.holds {
                    tracing::debug!("{subject}: {why}");
                }
                outcome.clone()
            }
            Err(trouble) => {
                page.trouble = Some(trouble.to_string());
                Outcome::default()
            }
        };
        if let Ok(snapshot) = engine.snapshot() {
            page.sequence = snapshot.sequence();
            page.main = snapshot.installation.seen.main.clone();
            for status in snapshot.statuses.values() {
                let name = format!("{}/{}", status.cluster, status.machine);
                page.machines.push(Machine {
                    cluster: status.cluster.clone(),
                    machine: status.machine.clone(),
                    state: word(status),
                    revision: status.applied.as_ref().map(|applied| applied.revision),
                    drift: status.open_drift.as_ref().map(|drift| drift.sequence),
                    frozen: status.frozen,
                    hold: outcome.holds.get(&name).cloned(),
                    unreachable: outcome.unreachable.get(&name).cloned(),
                    read: engine.last_read(&status.cluster, &status.machine).map(|at| at.to_string()),
                });
            }
        }
        self.shared.set(page);
    }
}

fn dialer(settings: &Settings) -> Dialer {
    Dialer::new(Deadlines {
        connect: settings.watch.connect.as_duration(),
        request: settings.watch.request.as_duration(),
    })
}

fn open(settings: &Settings, runtime: &tokio::runtime::Handle) -> Result<Engine> {
    let root_keys = settings
        .root_keys
        .iter()
        .map(|text| parse_public(text).map(|key| key.key_data().clone()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|_| refuse("A key in `root_keys` cannot be read: write it as in its .pub file"))?;
    let commit =
        |text: &str, what: &str| text.parse().map_err(|_| refuse(format!("`{what}` is no commit: {text}")));
    let setup = Setup {
        shard: settings.shard.clone(),
        main: settings.repository.branch.clone(),
        anchor: commit(&settings.anchor, "anchor")?,
        at_least: commit(&settings.state.at_least, "state.at_least")?,
        root_keys,
        denied_keys: settings.denied_keys.clone(),
        owner: settings.owner.clone().unwrap_or_else(host),
        author: settings.identity.principal.clone(),
    };
    let identity_path = settings.identity.age_identity.as_ref().unwrap_or(&settings.identity.ssh_key);
    let identity = zeroize::Zeroizing::new(
        std::fs::read(identity_path).with_context(|| format!("Cannot read `{}`", identity_path.display()))?,
    );
    let state_url =
        if settings.state.url.is_empty() { &settings.repository.url } else { &settings.state.url };
    let world = World {
        config: Box::new(GitRemote::new(&settings.repository.url, remote_options(settings)?)?),
        state: Box::new(GitRemote::new(state_url, remote_options(settings)?)?),
        nodes: Box::new(NetworkNodes::new(dialer(settings), runtime.clone())),
        clock: Box::new(SystemClock::new()),
        signer: KeySigner::read(&settings.identity.ssh_key)?,
        identity: AgeIdentity::parse(identity_path, &identity)?,
    };
    let disk =
        Disk::open(&settings.state.disk).map_err(|err| refuse(bronzeward_reconcile::trouble::chain(&err)))?;
    Engine::open(setup, world, disk).map_err(|trouble| refuse(trouble.to_string()))
}

fn remote_options(settings: &Settings) -> Result<RemoteOptions> {
    let read = |path: &std::path::PathBuf| {
        std::fs::read(path).with_context(|| format!("Cannot read `{}`", path.display()))
    };
    let repository = &settings.repository;
    let password = repository.password_file.as_ref().map(read).transpose()?;
    let password = password.map(|bytes| String::from_utf8_lossy(&bytes).trim_end().to_owned());
    Ok(RemoteOptions {
        ca_pem: repository.ca_file.as_ref().map(read).transpose()?,
        credentials: password
            .map(|password| (repository.user.clone().unwrap_or_else(|| "git".to_owned()), password)),
        ssh_command: repository.ssh_command.clone(),
    })
}

/// One watch on each adopted machine.
struct Watches {
    runtime: tokio::runtime::Handle,
    dialer: Dialer,
    wake: Sender<Wake>,
    running: BTreeMap<(String, String), (Endpoint, JoinHandle<()>)>,
}

impl Watches {
    fn new(runtime: &tokio::runtime::Handle, dialer: Dialer, wake: Sender<Wake>) -> Watches {
        Watches { runtime: runtime.clone(), dialer, wake, running: BTreeMap::new() }
    }

    fn set(&mut self, targets: Vec<WatchTarget>) {
        let wanted: BTreeMap<(String, String), WatchTarget> = targets
            .into_iter()
            .map(|target| ((target.cluster.clone(), target.machine.clone()), target))
            .collect();
        self.running.retain(|key, (endpoint, task)| {
            let keep = wanted.get(key).is_some_and(|target| target.endpoint == *endpoint);
            if !keep {
                task.abort();
            }
            keep
        });
        for (key, target) in wanted {
            if self.running.contains_key(&key) {
                continue;
            }
            let endpoint = target.endpoint;
            let task = self.runtime.spawn(watch(self.dialer, target, self.wake.clone()));
            self.running.insert(key, (endpoint, task));
        }
    }
}

/// Follows one node for ever; whatever breaks is dialled again, more and more slowly.
async fn watch(dialer: Dialer, target: WatchTarget, wake: Sender<Wake>) {
    const SLOWEST: Duration = Duration::from_secs(30);
    let mut pause = Duration::from_millis(500);
    loop {
        if let Ok(node) = dialer.dial(&target.endpoint, &target.access).await
            && let Ok(mut events) = node.watch_config().await
        {
            pause = Duration::from_millis(500);
            while let Some(ConfigEvent::Changed { .. }) = events.next().await {
                if wake.send(Wake::Machine(target.cluster.clone(), target.machine.clone())).is_err() {
                    return;
                }
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(SLOWEST);
    }
}
