//! Watching a node's configurations.

use tokio::sync::mpsc;
use tonic::{Code, Streaming};
use zeroize::Zeroize;

use crate::client::{ACTIVE_ID, CONFIG_KIND, CONFIG_NAMESPACE, Connection, PERSISTENT_ID};
use crate::endpoint::Endpoint;
use crate::error::{Cause, Failure, NodeError};
use crate::node::{ConfigEvent, ConfigWatch, Which};
use crate::proto::cosi::resource::state_client::StateClient;
use crate::proto::cosi::resource::{Event, EventType, Resource, WatchOptions, WatchRequest, WatchResponse};

const WHAT: &str = "show changes of its configuration";

/// Events that wait for a slow reader; beyond that the node waits too.
const WAITING: usize = 16;

/// How often in a row a watch starts over without having told anything.
const RESTARTS: u32 = 3;

struct Watcher {
    endpoint: Endpoint,
    state: StateClient<tonic::transport::Channel>,
    events: mpsc::Sender<ConfigEvent>,
}

pub(crate) async fn start(node: &Connection) -> Result<ConfigWatch, NodeError> {
    let (sender, receiver) = mpsc::channel(WAITING);
    let mut watcher = Watcher { endpoint: node.endpoint, state: node.state(), events: sender };
    let stream =
        node.within(WHAT, async { watcher.open().await.map_err(|f| f.asked(node.endpoint, WHAT)) }).await?;
    let task = tokio::spawn(async move {
        if let Some(error) = watcher.run(stream).await {
            // nobody listens any more: nothing to tell
            let _ = watcher.events.send(ConfigEvent::Ended(error)).await;
        }
    });
    Ok(ConfigWatch::running(receiver, task.abort_handle()))
}

enum Broken {
    Failed(Failure),
    /// The reader went away.
    Unwanted,
}

impl Watcher {
    /// Both configurations of the type, from what there is. The first message only says that the watch
    /// stands.
    async fn open(&mut self) -> Result<Streaming<WatchResponse>, Failure> {
        let request = WatchRequest {
            namespace: CONFIG_NAMESPACE.into(),
            r#type: CONFIG_KIND.into(),
            id: None,
            options: Some(WatchOptions { bootstrap_contents: true, tail_events: 0 }),
            api_version: 1,
        };
        let mut stream = self.state.watch(request).await?.into_inner();
        match stream.message().await? {
            Some(first) if first.event.is_empty() => Ok(stream),
            Some(_) => Err(Failure::Lost(Cause::Answer("the watch begins with an event"))),
            None => Err(Failure::Lost(Cause::Closed)),
        }
    }

    async fn run(&mut self, mut stream: Streaming<WatchResponse>) -> Option<NodeError> {
        let mut restarts = 0;
        loop {
            let mut told = false;
            let failure = match self.follow(&mut stream, &mut told).await {
                Broken::Failed(failure) => failure,
                Broken::Unwanted => return None,
            };
            restarts = if told { 1 } else { restarts + 1 };
            match failure {
                // "invalid watch bookmark": the node's state is a new one, so begin with what it holds now
                Failure::Answered(Code::FailedPrecondition, _) if restarts <= RESTARTS => {
                    match self.open().await {
                        Ok(new) => stream = new,
                        Err(failure) => return Some(failure.asked(self.endpoint, WHAT)),
                    }
                }
                failure => return Some(failure.asked(self.endpoint, WHAT)),
            }
        }
    }

    async fn follow(&self, stream: &mut Streaming<WatchResponse>, told: &mut bool) -> Broken {
        loop {
            let events = match stream.message().await {
                Ok(Some(response)) => response.event,
                Ok(None) => return Broken::Failed(Failure::Lost(Cause::Closed)),
                Err(status) => return Broken::Failed(status.into()),
            };
            for event in events {
                match read(event) {
                    Ok(None) => {}
                    Ok(Some(event)) => {
                        if self.events.send(event).await.is_err() {
                            return Broken::Unwanted;
                        }
                        *told = true;
                    }
                    Err(failure) => return Broken::Failed(failure),
                }
            }
        }
    }
}

/// What an event tells, if it is about a configuration that matters; its contents are wiped.
fn read(event: Event) -> Result<Option<ConfigEvent>, Failure> {
    let kind = event.event_type();
    let current = event.resource.map(wipe);
    let _ = event.old.map(wipe);
    match kind {
        EventType::Created | EventType::Updated => {}
        EventType::Errored if event.error.is_some_and(|text| text.contains("bookmark")) => {
            return Err(Failure::Answered(Code::FailedPrecondition, crate::NodeText::default()));
        }
        EventType::Errored => return Err(Failure::Lost(Cause::Answer("the watch failed on the node"))),
        EventType::Destroyed | EventType::Bootstrapped | EventType::Noop => return Ok(None),
    }
    let metadata = current
        .and_then(|resource| resource.metadata)
        .ok_or(Failure::Lost(Cause::Answer("an event without a resource")))?;
    let which = match metadata.id.as_str() {
        ACTIVE_ID => Which::Active,
        PERSISTENT_ID => Which::Persistent,
        _ => return Ok(None),
    };
    Ok(Some(ConfigEvent::Changed { which, version: crate::text::short(&metadata.version) }))
}

fn wipe(mut resource: Resource) -> Resource {
    if let Some(spec) = &mut resource.spec {
        spec.proto_spec.zeroize();
        spec.yaml_spec.zeroize();
    }
    resource
}
