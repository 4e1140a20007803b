//! The files of a cluster: the cluster itself, its machines, assignments and profiles.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ApiVersion;
use crate::name::{Layer, Name};

/// `clusters/<cluster>/cluster.yaml`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Cluster {
    /// The format.
    pub api_version: ApiVersion,
    /// Always `Cluster`.
    pub kind: ClusterKind,
    /// The name, equal to the folder's.
    pub name: Name,
    /// The cluster id that Talos reports.
    pub talos_cluster_id: String,
    /// The URL of the Kubernetes API.
    pub endpoint: String,
    /// The Talos minor whose rules compose the configuration, as in `v1.13`. Never inferred.
    pub contract: String,
    /// What should run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub talos: Option<TalosVersion>,
    /// Fields that other tools own by agreement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub foreign_owned: Vec<ForeignOwned>,
    /// In which order machines change.
    #[serde(default)]
    pub rollout: Rollout,
    /// Lints that are switched off.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub lints: BTreeMap<String, LintLevel>,
}

/// The kind of [`Cluster`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ClusterKind {
    /// The one value.
    Cluster,
}

/// What should run on the machines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct TalosVersion {
    /// As in `v1.13.9`.
    pub version: String,
    /// The image factory's schematic id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schematic: Option<String>,
}

/// A group of fields that another tool writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ForeignOwned {
    /// The image references that `talosctl upgrade-k8s` writes.
    KubernetesImages,
}

/// In which order machines change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Rollout {
    /// The waves, first one first.
    pub order: Vec<Wave>,
    /// Does the first failure halt the rest?
    pub halt_on_failure: bool,
}

impl Default for Rollout {
    fn default() -> Rollout {
        Rollout { order: vec![Wave::Workers, Wave::Controlplanes], halt_on_failure: true }
    }
}

/// A set of machines that may change together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Wave {
    /// The workers.
    Workers,
    /// The control planes.
    Controlplanes,
}

/// Whether a lint speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LintLevel {
    /// It does not.
    Off,
    /// It warns.
    Warn,
    /// It refuses.
    Error,
}

/// `clusters/<cluster>/machines/<machine>.yaml`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Machine {
    /// The format.
    pub api_version: ApiVersion,
    /// Always `Machine`.
    pub kind: MachineKind,
    /// The name, equal to the file's.
    pub name: Name,
    /// By what the machine is known.
    pub identity: Identity,
    /// An address, with a port if it is not 50000; never a DNS name.
    pub endpoint: Endpoint,
    /// What Talos runs on.
    pub platform: Platform,
    /// What the machine is in its cluster.
    pub role: Role,
}

/// The kind of [`Machine`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MachineKind {
    /// The one value.
    Machine,
}

/// By what a machine is known: what Talos reports, never a name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Identity {
    /// The Talos node id.
    pub node: String,
    /// The SMBIOS UUID, where the platform has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
}

/// What Talos runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Platform {
    /// Bare metal, or a virtual machine that boots like it.
    Metal,
    /// A cloud's image.
    Cloud,
    /// A container.
    Container,
}

impl Platform {
    /// The word in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Platform::Metal => "metal",
            Platform::Cloud => "cloud",
            Platform::Container => "container",
        }
    }
}

/// What a machine is in its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// It runs the control plane.
    Controlplane,
    /// It runs workloads.
    Worker,
}

impl Role {
    /// The word in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Controlplane => "controlplane",
            Role::Worker => "worker",
        }
    }

    /// The wave in which such machines change.
    pub fn wave(self) -> Wave {
        match self {
            Role::Controlplane => Wave::Controlplanes,
            Role::Worker => Wave::Workers,
        }
    }
}

/// The port of Talos' API.
pub const DEFAULT_PORT: u16 = 50_000;

/// Where a machine's API answers: an address and a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
#[schemars(with = "String")]
pub struct Endpoint(pub SocketAddr);

impl Endpoint {
    /// With the port always written, as plans hold it.
    pub fn full(&self) -> String {
        self.0.to_string()
    }
}

/// A text that is no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no address: write an IP address, with a port if it is not 50000 (never a DNS name)")]
pub struct BadEndpoint(pub String);

impl FromStr for Endpoint {
    type Err = BadEndpoint;

    fn from_str(text: &str) -> Result<Endpoint, BadEndpoint> {
        let bracketed = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let bare = match bracketed {
            Some(inside) => inside.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
            None => text.parse::<IpAddr>().ok(),
        };
        let found = bare.map(|ip| SocketAddr::new(ip, DEFAULT_PORT)).or_else(|| text.parse().ok());
        // a zone is one machine's name for its own link
        let zoned = |address: &SocketAddr| matches!(address, SocketAddr::V6(v6) if v6.scope_id() != 0);
        found
            .filter(|address| address.port() != 0 && !zoned(address))
            .map(Endpoint)
            .ok_or_else(|| BadEndpoint(text.to_owned()))
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.port() == DEFAULT_PORT { self.0.ip().fmt(f) } else { self.0.fmt(f) }
    }
}

impl Serialize for Endpoint {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Endpoint {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Endpoint, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// `clusters/<cluster>/assignments/<machine>.yaml`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Assignment {
    /// The format.
    pub api_version: ApiVersion,
    /// Always `Assignment`.
    pub kind: AssignmentKind,
    /// The machine, equal to the file's name.
    pub machine: Name,
    /// The base; the machine's own when it is not written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<Name>,
    /// Profiles, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<Name>,
    /// Fragments by layer, in order.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fragments: BTreeMap<Layer, Vec<Name>>,
}

/// The kind of [`Assignment`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AssignmentKind {
    /// The one value.
    Assignment,
}

/// `profiles/<name>.yaml` and `clusters/<cluster>/profiles/<name>.yaml`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Profile {
    /// The format.
    pub api_version: ApiVersion,
    /// Always `Profile`.
    pub kind: ProfileKind,
    /// The name, equal to the file's.
    pub name: Name,
    /// Fragments by layer, in order.
    pub fragments: BTreeMap<Layer, Vec<Name>>,
}

/// The kind of [`Profile`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ProfileKind {
    /// The one value.
    Profile,
}
