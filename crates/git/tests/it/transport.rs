//! The ways to a remote: the same tests run over each.

use std::path::{Path, PathBuf};

use bronzeward_git::RemoteOptions;
use bronzeward_testkit::githost::{GitHost, Login};
use bronzeward_testkit::people::{hermetic, succeed};

/// A way to a remote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// `file://`
    File,
    /// Smart HTTP in clear, without a login.
    Http,
    /// Smart HTTP over TLS, with a CA of our own.
    Https,
    /// The same, with a login.
    Login,
    /// SSH.
    Ssh,
}

/// Makes one test of each function for every transport: a failure names it.
macro_rules! over_every_transport {
    ($($name:ident),* $(,)?) => {
        over_every_transport!(@ file File $($name)*);
        over_every_transport!(@ http Http $($name)*);
        over_every_transport!(@ https Https $($name)*);
        over_every_transport!(@ login Login $($name)*);
        over_every_transport!(@ ssh Ssh $($name)*);
    };
    (@ $module:ident $transport:ident $($name:ident)*) => {
        mod $module {
            $(
                #[test]
                fn $name() {
                    super::$name(crate::transport::Transport::$transport);
                }
            )*
        }
    };
}
pub(crate) use over_every_transport;

/// Where repositories lie, and how they are reached.
pub struct Host {
    transport: Transport,
    root: PathBuf,
    server: Option<GitHost>,
}

/// The login of [`Transport::Login`].
pub fn login() -> Login {
    Login { user: "bot".into(), password: "hunter2".into() }
}

impl Host {
    /// Starts what the transport needs.
    pub fn start(transport: Transport, root: &Path) -> Host {
        // as the program does, once: whoever is first decides, and all are the same
        let _ = rustls::crypto::ring::default_provider().install_default();
        let server = match transport {
            Transport::File => None,
            Transport::Login => Some(GitHost::start(Some(login()))),
            _ => Some(GitHost::start(None)),
        };
        Host { transport, root: root.to_path_buf(), server }
    }

    /// Makes an empty bare repository and gives its path on disk.
    pub fn create(&self, name: &str) -> PathBuf {
        match &self.server {
            Some(server) => server.create(name),
            None => {
                let path = self.root.join(format!("{name}.git"));
                succeed(hermetic("git").args(["init", "-q", "--bare", "-b", "main"]).arg(&path));
                path
            }
        }
    }

    /// A repository's address, without a login.
    pub fn url(&self, name: &str) -> String {
        match (&self.server, self.transport) {
            (Some(server), Transport::Http) => server.http_url(name),
            (Some(server), Transport::Https | Transport::Login) => server.https_url(name),
            (Some(server), _) => server.ssh_url(name),
            (None, _) => format!("file://{}", self.root.join(format!("{name}.git")).display()),
        }
    }

    /// How it is reached.
    pub fn options(&self) -> RemoteOptions {
        let Some(server) = &self.server else { return RemoteOptions::default() };
        match self.transport {
            Transport::File | Transport::Http => RemoteOptions::default(),
            Transport::Https => RemoteOptions { ca_pem: Some(self.certificate()), ..Default::default() },
            Transport::Login => RemoteOptions {
                ca_pem: Some(self.certificate()),
                credentials: Some((login().user, login().password)),
                ..Default::default()
            },
            Transport::Ssh => RemoteOptions { ssh_command: Some(server.ssh_command()), ..Default::default() },
        }
    }

    /// The server of every transport but `file://`.
    pub fn server(&self) -> &GitHost {
        self.server.as_ref().expect("this transport has a server")
    }

    /// The certificate of the server.
    pub fn certificate(&self) -> Vec<u8> {
        std::fs::read(self.server().certificate()).unwrap()
    }
}
