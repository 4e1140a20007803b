//! Sample configurations, in the layout of Talos' generator for 1.13.

use std::fmt::Write;
use std::net::IpAddr;
use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::pki::{Authority, Random, key_pem};

/// A Kubernetes release in the range of Talos 1.13.
const KUBERNETES: &str = "v1.36.0";

/// What `talosctl gen secrets` would make.
pub(crate) struct Secrets {
    pub(crate) os: Authority,
    kubernetes: Authority,
    aggregator: Authority,
    etcd: Authority,
    service_account: String,
    cluster_id: String,
    cluster_secret: String,
    secretbox: String,
    machine_token: String,
    cluster_token: String,
}

impl Secrets {
    pub(crate) fn new(now: SystemTime, random: &mut Random<'_>) -> Result<Self, rcgen::Error> {
        Ok(Self {
            os: Authority::new("talos", now, random)?,
            kubernetes: Authority::new("kubernetes", now, random)?,
            aggregator: Authority::new("front-proxy", now, random)?,
            etcd: Authority::new("etcd", now, random)?,
            service_account: STANDARD.encode(key_pem(random)?),
            cluster_id: base64(random),
            cluster_secret: base64(random),
            secretbox: base64(random),
            machine_token: token(random),
            cluster_token: token(random),
        })
    }
}

fn base64(random: &mut Random<'_>) -> String {
    let mut bytes = [0; 32];
    random(&mut bytes);
    STANDARD.encode(bytes)
}

/// `[0-9a-z]{6}.[0-9a-z]{16}`, as kubeadm wants it.
fn token(random: &mut Random<'_>) -> String {
    const ALPHABET: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut letter = || {
        loop {
            let mut byte = [0];
            random(&mut byte);
            // above this, the first letters would come more often
            if byte[0] < 252 {
                return char::from(ALPHABET[usize::from(byte[0]) % ALPHABET.len()]);
            }
        }
    };
    let (id, secret): (String, String) =
        ((0..6).map(|_| letter()).collect(), (0..16).map(|_| letter()).collect());
    format!("{id}.{secret}")
}

pub(crate) fn control_plane(cluster: &str, endpoint: IpAddr, secrets: &Secrets, hostname: &str) -> String {
    let mut text = machine("controlplane", endpoint, secrets, true);
    text += "    nodeLabels:\n        node.kubernetes.io/exclude-from-external-load-balancers: \"\"\n";
    text += &shared(cluster, endpoint, secrets);
    let _ = writeln!(text, "    secretboxEncryptionSecret: {}", secrets.secretbox);
    text += &authority("    ", "ca", &secrets.kubernetes, true);
    text += &authority("    ", "aggregatorCA", &secrets.aggregator, true);
    let _ = writeln!(text, "    serviceAccount:\n        key: {}", secrets.service_account);
    let _ = writeln!(text, "    apiServer:\n        image: registry.k8s.io/kube-apiserver:{KUBERNETES}");
    let _ = writeln!(text, "        certSANs:\n            - {endpoint}");
    for (field, image) in [
        ("controllerManager", "kube-controller-manager"),
        ("proxy", "kube-proxy"),
        ("scheduler", "kube-scheduler"),
    ] {
        let _ = writeln!(text, "    {field}:\n        image: registry.k8s.io/{image}:{KUBERNETES}");
    }
    text += DISCOVERY;
    text += "    etcd:\n";
    text += &authority("        ", "ca", &secrets.etcd, true);
    text + &host(hostname)
}

pub(crate) fn worker(cluster: &str, endpoint: IpAddr, secrets: &Secrets, hostname: &str) -> String {
    let mut text = machine("worker", endpoint, secrets, false);
    text += &shared(cluster, endpoint, secrets);
    text += &authority("    ", "ca", &secrets.kubernetes, false);
    text += DISCOVERY;
    text + &host(hostname)
}

const DISCOVERY: &str = "    discovery:
        enabled: true
        registries:
            kubernetes:
                disabled: true
            service: {}
";

fn machine(kind: &str, endpoint: IpAddr, secrets: &Secrets, with_key: bool) -> String {
    let mut text = String::from("version: v1alpha1\ndebug: false\npersist: true\nmachine:\n");
    let _ = writeln!(text, "    type: {kind}\n    token: {}", secrets.machine_token);
    text += &authority("    ", "ca", &secrets.os, with_key);
    let _ = writeln!(text, "    certSANs:\n        - {endpoint}");
    let _ = writeln!(text, "    kubelet:\n        image: ghcr.io/siderolabs/kubelet:{KUBERNETES}");
    text += "        defaultRuntimeSeccompProfileEnabled: true\n        disableManifestsDirectory: true
    install:
        disk: /dev/vda
        wipe: false
        grubUseUKICmdline: true
    features:
        diskQuotaSupport: true
        kubePrism:
            enabled: true
            port: 7445
        hostDNS:
            enabled: true
            forwardKubeDNSToHost: true
";
    text
}

fn shared(cluster: &str, endpoint: IpAddr, secrets: &Secrets) -> String {
    let mut text = String::from("cluster:\n");
    let _ = writeln!(text, "    id: {}\n    secret: {}", secrets.cluster_id, secrets.cluster_secret);
    let url = std::net::SocketAddr::new(endpoint, 6443);
    let _ = writeln!(text, "    controlPlane:\n        endpoint: https://{url}\n    clusterName: {cluster}");
    text += "    network:
        dnsDomain: cluster.local
        podSubnets:
            - 10.244.0.0/16
        serviceSubnets:
            - 10.96.0.0/12
";
    let _ = writeln!(text, "    token: {}", secrets.cluster_token);
    text
}

fn authority(indent: &str, field: &str, authority: &Authority, with_key: bool) -> String {
    let key = if with_key { STANDARD.encode(&authority.key) } else { "\"\"".into() };
    let certificate = STANDARD.encode(&authority.certificate);
    format!("{indent}{field}:\n{indent}    crt: {certificate}\n{indent}    key: {key}\n")
}

fn host(hostname: &str) -> String {
    format!("---\napiVersion: v1alpha1\nkind: HostnameConfig\nauto: \"off\"\nhostname: {hostname}\n")
}
