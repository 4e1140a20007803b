//! Talos' machine service and COSI's state service over one connection.

use std::time::Duration;

use async_trait::async_trait;
use prost::Message;
use tokio::time::timeout;
use tonic::transport::Channel;
use tonic::{Code, Status};
use zeroize::{Zeroize, Zeroizing};

use crate::endpoint::Endpoint;
use crate::error::{ApplyError, Cause, Failure, NodeError};
use crate::facts;
use crate::node::{Applied, AppliedMode, ConfigRead, ConfigWatch, Facts, Mode, Node};
use crate::proto::common::Metadata;
use crate::proto::cosi::resource::state_client::StateClient;
use crate::proto::cosi::resource::{GetRequest, ListRequest, Resource};
use crate::proto::machine::apply_configuration_request::Mode as WireMode;
use crate::proto::machine::machine_service_client::MachineServiceClient;
use crate::proto::machine::{ApplyConfiguration, ApplyConfigurationRequest, Version};
use crate::proto::specs::MachineConfig;
use crate::text::NodeText;
use crate::watch;

/// Talos' limit for a message, both ways (its `constants.GRPCMaxMessageSize`).
pub(crate) const MESSAGE_LIMIT: usize = 32 << 20;

/// What an apply's message holds beside the configuration fits in this.
const APPLY_OVERHEAD: usize = 64;

/// Warnings of one apply that are kept.
const WARNING_LIMIT: usize = 100;

/// Resources of one type that are read.
const LIST_LIMIT: usize = 1000;

/// How often a configuration is read again that changes while it is read.
const READ_ATTEMPTS: usize = 5;

/// A resource's address.
#[derive(Clone, Copy)]
pub(crate) struct Key {
    pub(crate) namespace: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) id: &'static str,
    /// What reading it is called in an error.
    pub(crate) what: &'static str,
}

pub(crate) const CONFIG_NAMESPACE: &str = "config";
pub(crate) const CONFIG_KIND: &str = "MachineConfigs.config.talos.dev";
pub(crate) const ACTIVE_ID: &str = "v1alpha1";
pub(crate) const PERSISTENT_ID: &str = "persistent";

const ACTIVE: Key =
    Key { namespace: CONFIG_NAMESPACE, kind: CONFIG_KIND, id: ACTIVE_ID, what: "show its configuration" };
const PERSISTENT: Key = Key { id: PERSISTENT_ID, what: "show its persisted configuration", ..ACTIVE };

/// A connection that something which speaks Talos' API has answered on.
pub(crate) struct Connection {
    pub(crate) endpoint: Endpoint,
    channel: Channel,
    pub(crate) request: Duration,
}

impl Connection {
    pub(crate) fn new(endpoint: Endpoint, channel: Channel, request: Duration) -> Self {
        Self { endpoint, channel, request }
    }

    pub(crate) fn machine(&self) -> MachineServiceClient<Channel> {
        MachineServiceClient::new(self.channel.clone())
            .max_decoding_message_size(MESSAGE_LIMIT)
            .max_encoding_message_size(MESSAGE_LIMIT)
    }

    pub(crate) fn state(&self) -> StateClient<Channel> {
        StateClient::new(self.channel.clone()).max_decoding_message_size(MESSAGE_LIMIT)
    }

    pub(crate) fn protocol(&self, what: &'static str, why: &'static str) -> NodeError {
        NodeError::Protocol { endpoint: self.endpoint, what, why }
    }

    /// Within the deadline for questions.
    pub(crate) async fn within<T>(
        &self,
        what: &'static str,
        ask: impl Future<Output = Result<T, NodeError>>,
    ) -> Result<T, NodeError> {
        let lost = |_| NodeError::Lost { endpoint: self.endpoint, what, cause: Cause::Deadline };
        timeout(self.request, ask).await.map_err(lost)?
    }

    pub(crate) async fn ask_version(&self) -> Result<Version, Failure> {
        let reply = self.machine().version(()).await?.into_inner();
        let version = single(reply.messages)?;
        inside(version.metadata.as_ref())?;
        Ok(version)
    }

    /// A resource with its version and specification; none if the node does not have it.
    pub(crate) async fn get<S: Message + Default>(&self, key: Key) -> Result<Option<(String, S)>, NodeError> {
        let request = GetRequest {
            namespace: key.namespace.into(),
            r#type: key.kind.into(),
            id: key.id.into(),
            options: None,
        };
        let reply = match self.state().get(request).await {
            Ok(reply) => reply.into_inner(),
            Err(status) if status.code() == Code::NotFound => return Ok(None),
            Err(status) => return Err(Failure::from(status).asked(self.endpoint, key.what)),
        };
        let resource = reply.resource.ok_or_else(|| self.protocol(key.what, "no resource in the answer"))?;
        let (id, version, spec) = self.open(resource, key)?;
        if id != key.id {
            return Err(self.protocol(key.what, "it is another resource"));
        }
        Ok(Some((version, spec)))
    }

    /// All resources of a type; the key's id does not count.
    pub(crate) async fn list<S: Message + Default>(&self, key: Key) -> Result<Vec<S>, NodeError> {
        let request = ListRequest { namespace: key.namespace.into(), r#type: key.kind.into(), options: None };
        let failed = |status: Status| Failure::from(status).asked(self.endpoint, key.what);
        let mut stream = self.state().list(request).await.map_err(failed)?.into_inner();
        let mut all = Vec::new();
        let mut size = 0;
        while let Some(reply) = stream.message().await.map_err(failed)? {
            size += reply.encoded_len();
            if all.len() == LIST_LIMIT || size > MESSAGE_LIMIT {
                return Err(
                    self.protocol(key.what, "more than 1000 resources of one type, or 32 MiB of them")
                );
            }
            let resource =
                reply.resource.ok_or_else(|| self.protocol(key.what, "no resource in the answer"))?;
            all.push(self.open(resource, key)?.2);
        }
        Ok(all)
    }

    /// Decodes a resource and wipes what is left of it.
    fn open<S: Message + Default>(
        &self,
        resource: Resource,
        key: Key,
    ) -> Result<(String, String, S), NodeError> {
        let metadata =
            resource.metadata.ok_or_else(|| self.protocol(key.what, "a resource without metadata"))?;
        let mut spec =
            resource.spec.ok_or_else(|| self.protocol(key.what, "a resource without specification"))?;
        let decoded = S::decode(&*spec.proto_spec);
        let readable =
            !spec.proto_spec.is_empty() || spec.yaml_spec.trim() == "{}" || spec.yaml_spec.is_empty();
        spec.proto_spec.zeroize();
        spec.yaml_spec.zeroize();
        if metadata.namespace != key.namespace || metadata.r#type != key.kind {
            return Err(self.protocol(key.what, "it is another resource"));
        }
        match decoded {
            Ok(decoded) if readable => {
                Ok((crate::text::short(&metadata.id), crate::text::short(&metadata.version), decoded))
            }
            _ => Err(self.protocol(key.what, "the specification is not readable")),
        }
    }

    async fn read_config(&self) -> Result<ConfigRead, NodeError> {
        for _ in 0..READ_ATTEMPTS {
            let Some((version, active)) = self.get_config(ACTIVE).await? else {
                return Err(NodeError::Refused {
                    endpoint: self.endpoint,
                    what: ACTIVE.what,
                    code: Code::NotFound,
                    message: NodeText::new("no active configuration"),
                });
            };
            let persistent = self.get_config(PERSISTENT).await?.map(|(_, bytes)| bytes);
            // the two are read one after the other; they belong together only if nothing changed in between
            match self.get_config(ACTIVE).await? {
                Some((again, bytes)) if again == version && bytes == active => {
                    return Ok(ConfigRead { active, version, persistent });
                }
                _ => {}
            }
        }
        Err(self.protocol(ACTIVE.what, "it changes faster than it can be read"))
    }

    async fn get_config(&self, key: Key) -> Result<Option<(String, Zeroizing<Vec<u8>>)>, NodeError> {
        let read = self.get::<MachineConfig>(key).await?;
        Ok(read.map(|(version, spec)| (version, Zeroizing::new(spec.yaml_marshalled))))
    }

    async fn send_config(&self, request: ApplyConfigurationRequest) -> Result<ApplyConfiguration, Failure> {
        let reply = self.machine().apply_configuration(request).await?.into_inner();
        let applied = single(reply.messages)?;
        inside(applied.metadata.as_ref())?;
        Ok(applied)
    }
}

/// The one answer of the one node that was asked.
fn single<T>(mut messages: Vec<T>) -> Result<T, Failure> {
    match (messages.pop(), messages.is_empty()) {
        (Some(message), true) => Ok(message),
        _ => Err(Failure::Lost(Cause::Answer("not one message for the one node"))),
    }
}

/// A proxy puts a node's error inside an OK reply.
fn inside(metadata: Option<&Metadata>) -> Result<(), Failure> {
    let Some(metadata) = metadata else { return Ok(()) };
    match &metadata.status {
        Some(status) if status.code != 0 => {
            Err(Failure::Answered(Code::from_i32(status.code), NodeText::new(&status.message)))
        }
        _ if !metadata.error.is_empty() => {
            Err(Failure::Answered(Code::Unknown, NodeText::new(&metadata.error)))
        }
        _ => Ok(()),
    }
}

#[async_trait]
impl Node for Connection {
    async fn facts(&self) -> Result<Facts, NodeError> {
        self.within("tell who it is", facts::read(self)).await
    }

    async fn config(&self) -> Result<ConfigRead, NodeError> {
        self.within(ACTIVE.what, self.read_config()).await
    }

    async fn apply(
        &self,
        bytes: &[u8],
        mode: Mode,
        dry_run: bool,
        deadline: Duration,
    ) -> Result<Applied, ApplyError> {
        let limit = MESSAGE_LIMIT - APPLY_OVERHEAD;
        if bytes.len() > limit {
            return Err(ApplyError::TooLarge { size: bytes.len(), limit });
        }
        let endpoint = self.endpoint;
        let (wire, try_mode_timeout) = match mode {
            Mode::NoReboot => (WireMode::NoReboot, None),
            Mode::Staged => (WireMode::Staged, None),
            Mode::Try(span) => (WireMode::Try, Some(duration(span))),
        };
        let request =
            ApplyConfigurationRequest { data: bytes.to_vec(), mode: wire.into(), dry_run, try_mode_timeout };
        match timeout(deadline, self.send_config(request)).await {
            Ok(Ok(applied)) => Ok(Applied {
                mode: match applied.mode() {
                    WireMode::NoReboot => AppliedMode::NoReboot,
                    WireMode::Staged => AppliedMode::Staged,
                    WireMode::Try => AppliedMode::Try,
                    WireMode::Reboot | WireMode::Auto => AppliedMode::Other(applied.mode),
                },
                warnings: applied
                    .warnings
                    .iter()
                    .take(WARNING_LIMIT)
                    .map(|text| NodeText::new(text))
                    .collect(),
                details: NodeText::new(&applied.mode_details),
            }),
            Ok(Err(failure)) => Err(failure.applied(endpoint)),
            Err(_) => Err(ApplyError::Lost { endpoint, cause: Cause::Deadline }),
        }
    }

    async fn watch_config(&self) -> Result<ConfigWatch, NodeError> {
        watch::start(self).await
    }
}

/// Talos reads a Go duration out of it: nanoseconds in 64 bits. Longer times than that are as good as for
/// ever.
fn duration(span: Duration) -> prost_types::Duration {
    let seconds = i64::try_from(span.as_secs()).unwrap_or(i64::MAX).min(i64::MAX / 1_000_000_000 - 1);
    prost_types::Duration { seconds, nanos: i32::try_from(span.subsec_nanos()).unwrap_or(0) }
}
