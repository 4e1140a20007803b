//! A simulated cluster: its authority, its secrets, and the files that people and nodes get.

use std::net::{IpAddr, SocketAddr};
use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::SimError;
use crate::pki::Leaf;
use crate::sample::{self, Secrets};

/// Where bytes come from that nobody can guess; a test or a demo may give ones that can be guessed.
pub type RandomBytes = Box<dyn FnMut(&mut [u8]) + Send>;

/// What a talosconfig may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// `os:admin`
    Admin,
    /// `os:reader`
    Reader,
}

/// A cluster's secrets, made once; nodes and talosconfigs come from it. It holds keys, so it has no `Debug`.
pub struct SimCluster {
    name: String,
    endpoints: Vec<SocketAddr>,
    secrets: Secrets,
    admin: Leaf,
    reader: Leaf,
    now: SystemTime,
    random: RandomBytes,
}

impl SimCluster {
    /// Makes a cluster whose control plane nodes listen at `endpoints`, from `random` bytes at the time
    /// `now`: the same bytes and time give the same cluster.
    ///
    /// # Errors
    /// When a certificate cannot be made.
    pub fn new(
        name: &str,
        endpoints: &[SocketAddr],
        now: SystemTime,
        mut random: RandomBytes,
    ) -> Result<Self, SimError> {
        let secrets = Secrets::new(now, &mut *random)?;
        let admin = secrets.os.client("os:admin", now, &mut *random)?;
        let reader = secrets.os.client("os:reader", now, &mut *random)?;
        Ok(Self { name: name.into(), endpoints: endpoints.to_vec(), secrets, admin, reader, now, random })
    }

    /// The text of a talosconfig.
    pub fn talosconfig(&self, role: Role) -> String {
        let leaf = match role {
            Role::Admin => &self.admin,
            Role::Reader => &self.reader,
        };
        let encode = |pem: &str| STANDARD.encode(pem);
        let mut text = format!("context: {0}\ncontexts:\n    {0}:\n        endpoints:\n", self.name);
        for endpoint in &self.endpoints {
            text += &format!("            - {endpoint}\n");
        }
        text += &format!("        ca: {}\n", encode(&self.secrets.os.certificate));
        text += &format!("        crt: {}\n        key: {}\n", encode(&leaf.certificate), encode(&leaf.key));
        text
    }

    /// A sample configuration for a control plane node: a v1alpha1 document and a `HostnameConfig`, as Talos'
    /// own generator lays them out for 1.13. Its keys are all Ed25519, so it is for simulated nodes only.
    pub fn control_plane(&self, hostname: &str) -> String {
        sample::control_plane(&self.name, self.first(), &self.secrets, hostname)
    }

    /// A sample configuration for a worker.
    pub fn worker(&self, hostname: &str) -> String {
        sample::worker(&self.name, self.first(), &self.secrets, hostname)
    }

    fn first(&self) -> IpAddr {
        self.endpoints.first().map_or(IpAddr::from([127, 0, 0, 1]), SocketAddr::ip)
    }

    pub(crate) fn server(&mut self, name: &str, ip: IpAddr) -> Result<ServerFiles, SimError> {
        let leaf = self.secrets.os.server(name, &[ip], self.now, &mut *self.random)?;
        let mut boot = [0; 16];
        (self.random)(&mut boot);
        Ok(ServerFiles {
            authority: self.secrets.os.certificate.clone(),
            certificate: leaf.certificate,
            key: leaf.key,
            admin: self.admin.der.clone(),
            boot,
        })
    }
}

/// What a node needs of its cluster.
pub(crate) struct ServerFiles {
    pub(crate) authority: String,
    pub(crate) certificate: String,
    pub(crate) key: String,
    /// The one certificate with `os:admin`; whoever else the authority knows is a reader.
    pub(crate) admin: Vec<u8>,
    pub(crate) boot: [u8; 16],
}
