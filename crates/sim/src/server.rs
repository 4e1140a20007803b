//! The services: who may call them, and what they answer.

use std::pin::Pin;
use std::sync::{Arc, PoisonError, TryLockError};

use talos_client::proto::common::Data;
use talos_client::proto::cosi::resource::state_server::State as StateService;
use talos_client::proto::cosi::resource::{
    Event, EventType, GetRequest, GetResponse, ListRequest, ListResponse, Resource, WatchRequest,
    WatchResponse,
};
use talos_client::proto::machine::apply_configuration_request::Mode;
use talos_client::proto::machine::machine_service_server::MachineService;
use talos_client::proto::machine::{
    ApplyConfiguration, ApplyConfigurationRequest, ApplyConfigurationResponse, PlatformInfo, ReadRequest,
    Version, VersionInfo, VersionResponse,
};
use tokio::sync::{broadcast, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, iter};
use tonic::{Request, Response, Status};

use crate::documents;
use crate::machine::{Change, Machine, gone};
use crate::resources::{self, CONFIG};

/// The version of Talos whose manners are imitated.
const TALOS_VERSION: &str = "v1.13.9";
const BOOT_ID_PATH: &str = "/proc/sys/kernel/random/boot_id";

#[derive(Clone)]
pub(crate) struct Api(pub(crate) Arc<Machine>);

type Replies<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

impl Api {
    /// TLS has let in only certificates of the cluster; one of them is an administrator's.
    fn admin<T>(&self, request: &Request<T>) -> Result<(), Status> {
        let peers = request.peer_certs();
        match peers.as_ref().and_then(|certificates| certificates.first()) {
            Some(leaf) if leaf.as_ref() == self.0.admin => Ok(()),
            _ => Err(Status::permission_denied("not authorized")),
        }
    }

    fn may_read<T>(&self, request: &Request<T>, kind: &str) -> Result<(), Status> {
        // only the node itself is served; a call that names others has lost its way
        if ["node", "nodes"].iter().any(|key| request.metadata().contains_key(*key)) {
            return Err(Status::permission_denied("no request forwarding"));
        }
        match kind {
            CONFIG => self.admin(request),
            kind if resources::known(kind) => Ok(()),
            kind => Err(Status::permission_denied(format!("resource type {kind:?} is not supported"))),
        }
    }

    fn apply(&self, request: &ApplyConfigurationRequest) -> Result<ApplyConfiguration, Status> {
        let _guard = match self.0.applying.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => PoisonError::into_inner(poisoned),
            Err(TryLockError::WouldBlock) => {
                return Err(Status::failed_precondition(
                    "another apply configuration is already in progress",
                ));
            }
        };
        let summary = documents::read(&request.data).map_err(Status::invalid_argument)?;
        if request.mode() != Mode::NoReboot {
            return Err(Status::unimplemented(
                "the simulated node takes a configuration without a reboot only",
            ));
        }
        if self.0.state().summary.needs_reboot(&summary) {
            return Err(Status::invalid_argument("this config change can't be applied in immediate mode"));
        }
        let mut details = String::from("Applied configuration without a reboot");
        if request.dry_run {
            let same = self.0.state().active.bytes == request.data;
            let diff = if same { "No changes." } else { "The simulated node shows no differences." };
            details = format!("Dry run summary:\n{details} (skipped in dry-run).\nConfig diff:\n\n{diff}");
        } else {
            self.0.activate(&request.data, summary, true);
        }
        Ok(ApplyConfiguration { mode: request.mode, mode_details: details, ..ApplyConfiguration::default() })
    }
}

#[tonic::async_trait]
impl MachineService for Api {
    type ReadStream = Replies<Data>;

    async fn apply_configuration(
        &self,
        request: Request<ApplyConfigurationRequest>,
    ) -> Result<Response<ApplyConfigurationResponse>, Status> {
        self.admin(&request)?;
        let applied = self.apply(request.get_ref())?;
        Ok(Response::new(ApplyConfigurationResponse { messages: vec![applied] }))
    }

    async fn read(&self, request: Request<ReadRequest>) -> Result<Response<Self::ReadStream>, Status> {
        self.admin(&request)?;
        if request.get_ref().path != BOOT_ID_PATH {
            return Err(Status::unknown("the simulated node has no such file"));
        }
        let data = Data { metadata: None, bytes: format!("{}\n", self.0.boot_id).into_bytes() };
        Ok(Response::new(Box::pin(iter([Ok(data)]))))
    }

    async fn version(&self, _: Request<()>) -> Result<Response<VersionResponse>, Status> {
        let version = Version {
            metadata: None,
            version: Some(VersionInfo {
                tag: TALOS_VERSION.into(),
                os: "linux".into(),
                ..VersionInfo::default()
            }),
            platform: Some(PlatformInfo { name: "metal".into(), mode: "metal".into() }),
        };
        Ok(Response::new(VersionResponse { messages: vec![version] }))
    }
}

#[tonic::async_trait]
impl StateService for Api {
    type ListStream = Replies<ListResponse>;
    type WatchStream = Replies<WatchResponse>;

    async fn get(&self, request: Request<GetRequest>) -> Result<Response<GetResponse>, Status> {
        self.may_read(&request, &request.get_ref().r#type)?;
        let wanted = request.into_inner();
        find(&self.0, &wanted.namespace, &wanted.r#type, &wanted.id)
            .map(|resource| Response::new(GetResponse { resource: Some(resource) }))
            .ok_or_else(|| Status::not_found("resource doesn't exist"))
    }

    async fn list(&self, request: Request<ListRequest>) -> Result<Response<Self::ListStream>, Status> {
        self.may_read(&request, &request.get_ref().r#type)?;
        let wanted = request.into_inner();
        let all = resources::list(&self.0, &wanted.namespace, &wanted.r#type);
        let replies = all.into_iter().map(|resource| Ok(ListResponse { resource: Some(resource) }));
        Ok(Response::new(Box::pin(iter(replies))))
    }

    async fn watch(&self, request: Request<WatchRequest>) -> Result<Response<Self::WatchStream>, Status> {
        self.may_read(&request, &request.get_ref().r#type)?;
        let wanted = request.into_inner();
        let bootstrap = wanted.options.is_some_and(|options| options.bootstrap_contents);
        if wanted.r#type != CONFIG || wanted.namespace != "config" || wanted.id.is_some() || !bootstrap {
            return Err(Status::unimplemented(
                "the simulated node shows changes of all its configurations only",
            ));
        }
        // subscribed before what there is is read: nothing is missed, at worst something is told twice
        let changes = self.0.changes.subscribe();
        let (sender, receiver) = mpsc::channel(16);
        tokio::spawn(follow(self.0.clone(), changes, sender));
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }
}

fn find(machine: &Machine, namespace: &str, kind: &str, id: &str) -> Option<Resource> {
    resources::list(machine, namespace, kind)
        .into_iter()
        .find(|resource| resource.metadata.as_ref().is_some_and(|metadata| metadata.id == id))
}

/// An empty message, what there is, a mark, and then what changes, until nobody reads.
async fn follow(
    machine: Arc<Machine>,
    mut changes: broadcast::Receiver<Change>,
    sender: mpsc::Sender<Result<WatchResponse, Status>>,
) {
    let event = |resource: Option<Resource>, kind: EventType| WatchResponse {
        event: vec![Event { resource, event_type: kind.into(), old: None, error: None }],
    };
    let mut first = vec![WatchResponse { event: vec![] }];
    first.extend(
        resources::list(&machine, "config", CONFIG).into_iter().map(|r| event(Some(r), EventType::Created)),
    );
    first.push(event(None, EventType::Bootstrapped));
    for response in first {
        if sender.send(Ok(response)).await.is_err() {
            return;
        }
    }
    loop {
        let change = tokio::select! {
            change = changes.recv() => change,
            () = sender.closed() => return,
            () = gone(machine.alive.clone()) => return,
        };
        let response = match change {
            Ok(change) => {
                let kind = if change.created { EventType::Created } else { EventType::Updated };
                Ok(event(find(&machine, "config", CONFIG, change.id), kind))
            }
            Err(broadcast::error::RecvError::Lagged(_)) => {
                Err(Status::failed_precondition("invalid watch bookmark"))
            }
            Err(broadcast::error::RecvError::Closed) => return,
        };
        let last = response.is_err();
        if sender.send(response).await.is_err() || last {
            return;
        }
    }
}

/// A random UUID, version 4.
pub(crate) fn uuid(mut bytes: [u8; 16]) -> String {
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}
