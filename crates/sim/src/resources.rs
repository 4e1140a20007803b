//! The resources that tell who a node is, under Talos' names.

use std::net::IpAddr;

use prost::Message;
use talos_client::proto::common::NetIpPrefix;
use talos_client::proto::cosi::resource::{Metadata, Resource, Spec};
use talos_client::proto::specs::{self, machine_status, machine_type};

use crate::machine::{Config, Machine, State};

pub(crate) const CONFIG: &str = "MachineConfigs.config.talos.dev";
const TYPE: &str = "MachineTypes.config.talos.dev";
const IDENTITY: &str = "Identities.cluster.talos.dev";
const CLUSTER: &str = "Infos.cluster.talos.dev";
const STATUS: &str = "MachineStatuses.runtime.talos.dev";
const EXTENSION: &str = "ExtensionStatuses.runtime.talos.dev";
const HOSTNAME: &str = "HostnameStatuses.net.talos.dev";
const ADDRESS: &str = "NodeAddresses.net.talos.dev";
const SYSTEM: &str = "SystemInformations.hardware.talos.dev";

const KINDS: [&str; 9] = [CONFIG, TYPE, IDENTITY, CLUSTER, STATUS, EXTENSION, HOSTNAME, ADDRESS, SYSTEM];

/// Whether this node knows a type at all.
pub(crate) fn known(kind: &str) -> bool {
    KINDS.contains(&kind)
}

/// All resources of a type in a namespace.
pub(crate) fn list(machine: &Machine, namespace: &str, kind: &str) -> Vec<Resource> {
    let state = machine.state();
    all(machine, &state)
        .into_iter()
        .filter(|r| r.metadata.as_ref().is_some_and(|m| m.namespace == namespace && m.r#type == kind))
        .collect()
}

fn all(machine: &Machine, state: &State) -> Vec<Resource> {
    let summary = &state.summary;
    let kind = match summary.machine_type.as_str() {
        "controlplane" => machine_type::Kind::ControlPlane,
        _ => machine_type::Kind::Worker,
    };
    let status = specs::MachineStatus {
        stage: machine_status::Stage::Running.into(),
        status: Some(machine_status::Status { ready: true, unmet_conditions: vec![] }),
    };
    let cluster = specs::ClusterInfo {
        cluster_id: summary.cluster_id.clone(),
        cluster_name: summary.cluster_name.clone(),
    };
    let hostname = if summary.hostname.is_empty() { &machine.options.name } else { &summary.hostname };
    let (host, domain) = hostname.split_once('.').unwrap_or((hostname, ""));
    let host = specs::Hostname { hostname: host.into(), domainname: domain.into() };
    let system = specs::SystemInformation {
        uuid: machine.options.uuid.clone(),
        ..specs::SystemInformation::default()
    };
    let mut all = vec![
        config("v1alpha1", &state.active),
        resource("config", TYPE, "machine-type", &specs::MachineType { machine_type: kind.into() }),
        resource("cluster", IDENTITY, "local", &specs::Identity { node_id: machine.options.node_id.clone() }),
        resource("cluster", CLUSTER, "current", &cluster),
        resource("runtime", STATUS, "machine", &status),
        resource("network", HOSTNAME, "hostname", &host),
        resource("network", ADDRESS, "current", &specs::NodeAddress { addresses: vec![prefix(machine)] }),
        resource("hardware", SYSTEM, "systeminformation", &system),
    ];
    all.extend(state.persistent.as_ref().map(|persistent| config("persistent", persistent)));
    if !machine.options.schematic.is_empty() {
        let metadata = specs::extension::Metadata {
            name: "schematic".into(),
            version: machine.options.schematic.clone(),
        };
        let extension = specs::Extension { image: String::new(), metadata: Some(metadata) };
        all.push(resource("runtime", EXTENSION, "0", &extension));
    }
    all
}

fn prefix(machine: &Machine) -> NetIpPrefix {
    match machine.address.ip() {
        IpAddr::V4(ip) => NetIpPrefix { ip: ip.octets().to_vec(), prefix_length: 32 },
        IpAddr::V6(ip) => NetIpPrefix { ip: ip.octets().to_vec(), prefix_length: 128 },
    }
}

fn config(id: &str, config: &Config) -> Resource {
    let spec = specs::MachineConfig { yaml_marshalled: config.bytes.clone() };
    let mut resource = resource("config", CONFIG, id, &spec);
    if let Some(metadata) = &mut resource.metadata {
        metadata.version = config.version.to_string();
    }
    resource
}

fn resource(namespace: &str, kind: &str, id: &str, spec: &impl Message) -> Resource {
    Resource {
        metadata: Some(Metadata {
            namespace: namespace.into(),
            r#type: kind.into(),
            id: id.into(),
            version: "1".into(),
            phase: "running".into(),
            ..Metadata::default()
        }),
        spec: Some(Spec { proto_spec: spec.encode_to_vec(), yaml_spec: String::new() }),
    }
}
