//! The remote: where the configuration and the state live. A trait, so that tests can lose an answer.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use gix::remote::Direction;
use gix_transport::Protocol;
use gix_transport::client::blocking_io::{Transport, connect, http};

use crate::push::{PushError, PushReport, RefUpdate, push};
use crate::{Oid, Repo};

/// What a fetch saw: the refs of the remote that the refspecs name, by their name *on the remote*.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fetched {
    /// Full ref name to value.
    pub refs: BTreeMap<String, Oid>,
}

/// A remote could not be read.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The address cannot be used.
    #[error("`{url}` is no address of a Git repository: use https://, ssh:// or file://")]
    Url {
        /// The address, without credentials.
        url: String,
    },
    /// The remote cannot be reached, or refuses us.
    #[error("Cannot fetch from `{url}`")]
    Unreachable {
        /// The address, without credentials.
        url: String,
        /// Why.
        source: Box<gix::Error>,
    },
    /// The remote asks who we are, and does not take what we say.
    #[error("`{url}` refuses the login: check the user and the password or token that are named for it")]
    Login {
        /// The address, without credentials.
        url: String,
    },
    /// The remote's certificate is by nobody whom we trust.
    #[error("The certificate of `{url}` is not trusted: name the CA bundle of whoever made it")]
    Certificate {
        /// The address, without credentials.
        url: String,
        /// Why.
        source: Box<gix::Error>,
    },
    /// A CA file cannot be read as certificates.
    #[error("The CA bundle of `{url}` cannot be read")]
    Ca {
        /// The address, without credentials.
        url: String,
    },
}

/// A Git remote.
pub trait Remote: Send + Sync {
    /// Brings what the refspecs name, and says where the remote's refs stand.
    ///
    /// # Errors
    /// [`FetchError`].
    fn fetch(&self, repo: &Repo, refspecs: &[&str]) -> Result<Fetched, FetchError>;

    /// Moves refs by compare-and-swap, all or none.
    ///
    /// # Errors
    /// [`PushError`]; only [`PushError::Unknown`] leaves open whether it happened.
    fn push(&self, repo: &Repo, updates: &[RefUpdate]) -> Result<PushReport, PushError>;

    /// The address for people, without credentials.
    fn url(&self) -> &str;
}

/// How a remote is reached.
#[derive(Clone, Default)]
pub struct RemoteOptions {
    /// Certificates (PEM) that are trusted instead of the system's.
    pub ca_pem: Option<Vec<u8>>,
    /// User and password (a token) for HTTP.
    pub credentials: Option<(String, String)>,
    /// The command that stands for `ssh`, with its arguments.
    pub ssh_command: Option<String>,
}

impl fmt::Debug for RemoteOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteOptions").field("ssh_command", &self.ssh_command).finish_non_exhaustive()
    }
}

/// A remote over `file://`, smart HTTP or SSH.
#[derive(Clone, Debug)]
pub struct GitRemote {
    address: String,
    shown: String,
    options: RemoteOptions,
}

impl GitRemote {
    /// A remote at an address (`https://…`, `ssh://…`, `user@host:path`, `file://…` or a path).
    ///
    /// # Errors
    /// [`FetchError::Url`] when it cannot be read as one, [`FetchError::Ca`] when the CA bundle holds no certificate.
    pub fn new(address: &str, options: RemoteOptions) -> Result<GitRemote, FetchError> {
        let shown = without_credentials(address);
        if options.ca_pem.as_deref().is_some_and(|pem| certificates(pem).is_none()) {
            return Err(FetchError::Ca { url: shown });
        }
        match gix::url::parse(address) {
            Ok(_) => Ok(GitRemote { address: address.to_owned(), shown, options }),
            Err(_) => Err(FetchError::Url { url: shown }),
        }
    }

    fn connect(&self, version: Protocol) -> Result<Box<dyn Transport + Send>, gix::Error> {
        let url = gix::url::parse(&self.address)?;
        let ssh = gix_transport::client::blocking_io::ssh::connect::Options {
            command: self.options.ssh_command.clone().map(Into::into),
            disallow_shell: false,
            kind: None,
        };
        let options = connect::Options { version, ssh, ..Default::default() };
        let mut transport = connect::connect(url, options)?;
        if self.is_http()? {
            transport
                .configure(&self.http_options())
                .map_err(|err| gix::Error::from_error(Opaque(err.to_string())))?;
            if let Some((username, password)) = &self.options.credentials {
                transport.set_identity(gix::sec::identity::Account {
                    username: username.clone(),
                    password: password.clone(),
                    oauth_refresh_token: None,
                })?;
            }
        }
        Ok(transport)
    }

    fn is_http(&self) -> Result<bool, gix::Error> {
        let scheme = gix::url::parse(&self.address)?.scheme;
        Ok(matches!(scheme, gix::url::Scheme::Http | gix::url::Scheme::Https))
    }

    fn http_options(&self) -> http::Options {
        let mut backend = http::reqwest::Options::default();
        if let Some(pem) = self.options.ca_pem.clone() {
            backend.configure_client = Some(Box::new(move |builder| {
                // none at all trusts nobody
                Ok(builder.tls_certs_only(certificates(&pem).unwrap_or_default()))
            }));
        }
        http::Options { backend: Some(Arc::new(Mutex::new(backend))), ..Default::default() }
    }
}

/// The certificates of a PEM file, `None` when there are none.
fn certificates(pem: &[u8]) -> Option<Vec<reqwest::Certificate>> {
    reqwest::Certificate::from_pem_bundle(pem).ok().filter(|list| !list.is_empty())
}

/// Is it the certificate that an error is about? Only the words depend on it: gix hides the types.
fn is_about_a_certificate(err: &(dyn std::error::Error + 'static)) -> bool {
    let mut cause = Some(err);
    while let Some(err) = cause {
        if err.to_string().contains("invalid peer certificate") {
            return true;
        }
        cause = err.source();
    }
    false
}

#[derive(Debug)]
struct Opaque(String);

impl fmt::Display for Opaque {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Opaque {}

impl Remote for GitRemote {
    fn fetch(&self, repo: &Repo, refspecs: &[&str]) -> Result<Fetched, FetchError> {
        let asked = AtomicBool::new(false);
        let fetch = || -> Result<Fetched, gix::Error> {
            let local = repo.local();
            let remote = local
                .remote_at(self.address.as_str())?
                .with_fetch_tags(gix::remote::fetch::Tags::None)
                .with_refspecs(refspecs.iter().copied(), Direction::Fetch)?;
            let mut connection = remote
                .to_connection_with_transport(self.connect(Protocol::V2)?)
                // who is refused is refused: no helper of the machine is run, and nobody is asked at a terminal
                .with_credentials(|_| {
                    asked.store(true, Ordering::Relaxed);
                    Ok(None)
                });
            if self.is_http()? {
                // without these gix would configure the transport once more, by git's settings alone
                connection.set_transport_options(Box::new(self.http_options()));
            }
            let prepared = connection.prepare_fetch(gix::progress::Discard, Default::default())?;
            let outcome = prepared.receive(gix::progress::Discard, &AtomicBool::new(false))?;
            let mut refs = BTreeMap::new();
            for mapping in &outcome.ref_map.mappings {
                if let (Some(name), Some(id)) = (mapping.remote.as_name(), mapping.remote.as_id()) {
                    refs.insert(name.to_string(), id.to_owned());
                }
            }
            Ok(Fetched { refs })
        };
        fetch().map_err(|source| {
            let (url, untrusted) = (self.shown.clone(), is_about_a_certificate(&source));
            let source = Box::new(source);
            match asked.load(Ordering::Relaxed) {
                true => FetchError::Login { url },
                false if untrusted => FetchError::Certificate { url, source },
                false => FetchError::Unreachable { url, source },
            }
        })
    }

    fn push(&self, repo: &Repo, updates: &[RefUpdate]) -> Result<PushReport, PushError> {
        // version 1 asks for nothing newer: receive-pack has no version 2
        let mut transport = self
            .connect(Protocol::V1)
            .map_err(|source| PushError::Unreachable { url: self.shown.clone(), source: Box::new(source) })?;
        push(repo, &mut *transport, &self.shown, updates)
    }

    fn url(&self) -> &str {
        &self.shown
    }
}

/// `https://user:token@host/x` as `https://host/x`.
fn without_credentials(address: &str) -> String {
    match address.split_once("://") {
        Some((scheme, rest)) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
            let path = path.split('?').next().unwrap_or_default();
            format!("{scheme}://{host}{path}")
        }
        None => address.to_owned(),
    }
}
