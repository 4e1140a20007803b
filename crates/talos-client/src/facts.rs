//! Reading what a node says about itself. The resources and their ids are Talos' (`pkg/machinery/resources`).

use std::net::IpAddr;

use tonic::Code;

use crate::client::{Connection, Key};
use crate::error::{Failure, NodeError};
use crate::node::{Facts, MachineType, Stage, Unmet};
use crate::proto::machine::ReadRequest;
use crate::proto::specs::{self, machine_status, machine_type};
use crate::text::{short, some_short};

const WHAT: &str = "tell who it is";

const IDENTITY: Key = key("cluster", "Identities.cluster.talos.dev", "local");
const CLUSTER: Key = key("cluster", "Infos.cluster.talos.dev", "current");
const TYPE: Key = key("config", "MachineTypes.config.talos.dev", "machine-type");
const STATUS: Key = key("runtime", "MachineStatuses.runtime.talos.dev", "machine");
const EXTENSIONS: Key = key("runtime", "ExtensionStatuses.runtime.talos.dev", "");
const BOOT: Key = key("runtime", "BootIDs.runtime.talos.dev", "boot-id");
const HOSTNAME: Key = key("network", "HostnameStatuses.net.talos.dev", "hostname");
const ADDRESSES: Key = key("network", "NodeAddresses.net.talos.dev", "current");
const SYSTEM: Key = key("hardware", "SystemInformations.hardware.talos.dev", "systeminformation");

/// Where Linux tells the boot id.
const BOOT_ID_PATH: &str = "/proc/sys/kernel/random/boot_id";
const BOOT_ID_LIMIT: usize = 128;

const ADDRESS_LIMIT: usize = 256;
const UNMET_LIMIT: usize = 100;

const fn key(namespace: &'static str, kind: &'static str, id: &'static str) -> Key {
    Key { namespace, kind, id, what: WHAT }
}

pub(crate) async fn read(node: &Connection) -> Result<Facts, NodeError> {
    let version = async { node.ask_version().await.map_err(|failure| failure.asked(node.endpoint, WHAT)) };
    let (version, id, cluster, kind, status, extensions, boot, host, addresses, dmi) = tokio::try_join!(
        version,
        node.get::<specs::Identity>(IDENTITY),
        node.get::<specs::ClusterInfo>(CLUSTER),
        node.get::<specs::MachineType>(TYPE),
        node.get::<specs::MachineStatus>(STATUS),
        node.list::<specs::Extension>(EXTENSIONS),
        boot_id(node),
        node.get::<specs::Hostname>(HOSTNAME),
        node.get::<specs::NodeAddress>(ADDRESSES),
        node.get::<specs::SystemInformation>(SYSTEM),
    )?;
    let talos_version = version.version.and_then(|info| some_short(&info.tag));
    let status = status.map(|(_, spec)| spec).unwrap_or_default();
    let cluster = cluster.map(|(_, spec)| spec).unwrap_or_default();
    let stage = stage(status.stage());
    let health = status.status.unwrap_or_default();
    Ok(Facts {
        node_id: id.and_then(|(_, spec)| some_short(&spec.node_id)),
        cluster_id: some_short(&cluster.cluster_id),
        cluster_name: some_short(&cluster.cluster_name),
        smbios_uuid: dmi.and_then(|(_, spec)| smbios_uuid(&spec.uuid)),
        machine_type: kind.and_then(|(_, spec)| machine_type(spec.machine_type())),
        talos_version: talos_version.ok_or_else(|| node.protocol(WHAT, "no version"))?,
        platform: version.platform.and_then(|platform| some_short(&platform.name)),
        schematic: schematic(extensions),
        stage,
        ready: health.ready,
        unmet: health
            .unmet_conditions
            .iter()
            .take(UNMET_LIMIT)
            .map(|unmet| Unmet { name: short(&unmet.name), reason: short(&unmet.reason) })
            .collect(),
        hostname: host.and_then(|(_, spec)| full_name(&spec)),
        boot_id: boot,
        addresses: addresses.map(|(_, spec)| ips(&spec)).unwrap_or_default(),
    })
}

/// The resource, which exists from Talos 1.14 on (an unknown type is answered like a forbidden one); else the
/// kernel's file, which only `os:admin` may read.
async fn boot_id(node: &Connection) -> Result<Option<String>, NodeError> {
    match node.get::<specs::BootId>(BOOT).await {
        Ok(Some((_, spec))) => return Ok(some_short(&spec.boot_id)),
        Ok(None) | Err(NodeError::Refused { .. }) => {}
        Err(error) => return Err(error),
    }
    match read_file(node).await {
        Ok(text) => Ok(some_short(text.trim())),
        Err(Failure::Answered(code, _)) if !matches!(code, Code::Unavailable | Code::DeadlineExceeded) => {
            Ok(None)
        }
        Err(failure) => Err(failure.asked(node.endpoint, WHAT)),
    }
}

async fn read_file(node: &Connection) -> Result<String, Failure> {
    let mut stream = node.machine().read(ReadRequest { path: BOOT_ID_PATH.into() }).await?.into_inner();
    let mut bytes = Vec::new();
    while let Some(piece) = stream.message().await? {
        bytes.extend_from_slice(&piece.bytes);
        if bytes.len() > BOOT_ID_LIMIT {
            return Ok(String::new());
        }
    }
    Ok(String::from_utf8(bytes).unwrap_or_default())
}

fn machine_type(kind: machine_type::Kind) -> Option<MachineType> {
    match kind {
        machine_type::Kind::Unknown => None,
        machine_type::Kind::Init => Some(MachineType::Init),
        machine_type::Kind::ControlPlane => Some(MachineType::ControlPlane),
        machine_type::Kind::Worker => Some(MachineType::Worker),
    }
}

fn stage(stage: machine_status::Stage) -> Stage {
    match stage {
        machine_status::Stage::Unknown => Stage::Unknown,
        machine_status::Stage::Booting => Stage::Booting,
        machine_status::Stage::Installing => Stage::Installing,
        machine_status::Stage::Maintenance => Stage::Maintenance,
        machine_status::Stage::Running => Stage::Running,
        machine_status::Stage::Rebooting => Stage::Rebooting,
        machine_status::Stage::ShuttingDown => Stage::ShuttingDown,
        machine_status::Stage::Resetting => Stage::Resetting,
        machine_status::Stage::Upgrading => Stage::Upgrading,
    }
}

/// The image factory adds an extension of this name whose version is the schematic's id.
fn schematic(extensions: Vec<specs::Extension>) -> Option<String> {
    extensions
        .into_iter()
        .filter_map(|extension| extension.metadata)
        .find(|metadata| metadata.name == "schematic")
        .and_then(|metadata| some_short(&metadata.version))
}

/// Boards without one report zeros or ones.
fn smbios_uuid(raw: &str) -> Option<String> {
    let uuid = short(raw).to_ascii_lowercase();
    let blank = |filler: char| uuid.chars().all(|c| c == '-' || c == filler);
    if blank('0') || blank('f') { None } else { Some(uuid) }
}

fn full_name(spec: &specs::Hostname) -> Option<String> {
    let (host, domain) = (short(&spec.hostname), short(&spec.domainname));
    match (host.is_empty(), domain.is_empty()) {
        (true, _) => None,
        (false, true) => Some(host),
        (false, false) => Some(format!("{host}.{domain}")),
    }
}

/// Go's `netip.Addr` in binary: four bytes, or sixteen and then perhaps a zone, which says nothing to others.
fn ips(spec: &specs::NodeAddress) -> Vec<IpAddr> {
    let ip = |bytes: &[u8]| match <[u8; 4]>::try_from(bytes) {
        Ok(v4) => Some(IpAddr::from(v4)),
        Err(_) => bytes.first_chunk::<16>().map(|v6| IpAddr::from(*v6)),
    };
    spec.addresses.iter().take(ADDRESS_LIMIT).filter_map(|prefix| ip(&prefix.ip)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::common::NetIpPrefix;

    #[test]
    fn placeholders_are_no_uuid() {
        assert_eq!(smbios_uuid("00000000-0000-0000-0000-000000000000"), None);
        assert_eq!(smbios_uuid("FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF"), None);
        assert_eq!(smbios_uuid(""), None);
        assert_eq!(smbios_uuid("4C4C4544-0042").as_deref(), Some("4c4c4544-0042"));
    }

    #[test]
    fn addresses_of_both_families() {
        let prefix = |ip: &[u8]| NetIpPrefix { ip: ip.to_vec(), prefix_length: 24 };
        let mut zoned = [0xfe, 0x80].to_vec();
        zoned.resize(16, 0);
        zoned.extend(b"eth0");
        let spec =
            specs::NodeAddress { addresses: vec![prefix(&[10, 0, 0, 4]), prefix(&zoned), prefix(&[1, 2])] };
        assert_eq!(ips(&spec), ["10.0.0.4".parse::<IpAddr>().unwrap(), "fe80::".parse().unwrap()]);
    }
}
