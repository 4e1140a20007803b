//! The right to talk to the nodes of a cluster: its CA, a client certificate and that certificate's key.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ClientConfig, RootCertStore};
use zeroize::Zeroizing;

use crate::der::{self, Leaf};

/// The label that Talos' library puts on Ed25519 keys, whose content is PKCS#8 (siderolabs/crypto).
const TALOS_KEY_LABEL: &[u8] = b"ED25519 PRIVATE KEY";
const KEY_LABEL: &[u8] = b"PRIVATE KEY";

/// CA, client certificate and key, checked and ready for mutual TLS. `Debug` shows no key material.
#[derive(Clone)]
pub struct Access {
    tls: Arc<ClientConfig>,
    leaf: Leaf,
}

/// Why key material cannot be used. Never holds any of it.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// `ca` or `crt` has no certificate.
    #[error("No PEM certificate in `{field}`; take a whole talosconfig, as `talosctl config new` writes it")]
    NoCertificate {
        /// The talosconfig's field.
        field: &'static str,
    },
    /// A certificate that cannot be used.
    #[error(
        "The certificate in `{field}` cannot be used; take a whole talosconfig, as `talosctl config new` \
             writes it"
    )]
    Certificate {
        /// The talosconfig's field.
        field: &'static str,
        /// rustls' judgement, if it came that far.
        #[source]
        source: Option<rustls::Error>,
    },
    /// `key` is no PKCS#8 key, or another certificate's.
    #[error(
        "The key in `key` cannot be used with the certificate in `crt`; take a whole talosconfig, as \
             `talosctl config new` writes it"
    )]
    Key {
        /// rustls' judgement, if it came that far.
        #[source]
        source: Option<rustls::Error>,
    },
    /// The client certificate is out of date; a node would refuse it without saying so.
    #[error(
        "The client certificate is no longer valid; renew the access (`access renew`, or `talosctl config \
             new` for a person's own)"
    )]
    Expired {
        /// Until when it was valid.
        not_after: SystemTime,
    },
    /// The client certificate's time has not come; a clock is wrong.
    #[error(
        "The client certificate is not valid yet; compare this machine's clock with that of the one that \
             made it"
    )]
    NotYetValid {
        /// From when on it is valid.
        not_before: SystemTime,
    },
}

impl Access {
    /// Takes PEM texts in. Talos' own label for Ed25519 keys is understood.
    ///
    /// # Errors
    /// When a certificate or the key cannot be read, or the two do not belong together.
    pub fn from_pem(ca: &[u8], crt: &[u8], key: &[u8]) -> Result<Self, AccessError> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates("ca", ca)? {
            roots
                .add(certificate)
                .map_err(|source| AccessError::Certificate { field: "ca", source: Some(source) })?;
        }
        let chain = certificates("crt", crt)?;
        let leaf = chain
            .first()
            .and_then(|certificate| der::leaf(certificate))
            .ok_or(AccessError::Certificate { field: "crt", source: None })?;
        let key = PrivatePkcs8KeyDer::from_pem_slice(&relabel(key))
            .map_err(|_| AccessError::Key { source: None })?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut tls = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|source| AccessError::Key { source: Some(source) })?
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, PrivateKeyDer::Pkcs8(key))
            .map_err(|source| AccessError::Key { source: Some(source) })?;
        tls.alpn_protocols = vec![b"h2".to_vec()];
        // every connection proves itself anew
        tls.resumption = rustls::client::Resumption::disabled();
        Ok(Self { tls: Arc::new(tls), leaf })
    }

    /// Until when the client certificate is valid. Talos gives it a year and renews nothing by itself.
    pub fn not_after(&self) -> SystemTime {
        self.leaf.not_after
    }

    /// The roles that the certificate claims: the organizations of its subject (`os:admin`, `os:reader`, …).
    pub fn roles(&self) -> &[String] {
        &self.leaf.organizations
    }

    /// Whether the client certificate is valid now.
    ///
    /// # Errors
    /// [`AccessError::Expired`] or [`AccessError::NotYetValid`].
    pub fn check(&self, now: SystemTime) -> Result<(), AccessError> {
        if now > self.leaf.not_after {
            return Err(AccessError::Expired { not_after: self.leaf.not_after });
        }
        if now < self.leaf.not_before {
            return Err(AccessError::NotYetValid { not_before: self.leaf.not_before });
        }
        Ok(())
    }

    pub(crate) fn tls(&self) -> Arc<ClientConfig> {
        self.tls.clone()
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access")
            .field("roles", &self.leaf.organizations)
            .field("not_after", &self.leaf.not_after)
            .finish_non_exhaustive()
    }
}

fn certificates(field: &'static str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, AccessError> {
    let all: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|_| AccessError::Certificate { field, source: None })?;
    if all.is_empty() { Err(AccessError::NoCertificate { field }) } else { Ok(all) }
}

fn relabel(pem: &[u8]) -> Zeroizing<Vec<u8>> {
    let mut out = Zeroizing::new(Vec::with_capacity(pem.len()));
    let mut rest = pem;
    while let Some(at) = rest.windows(TALOS_KEY_LABEL.len()).position(|window| window == TALOS_KEY_LABEL) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(KEY_LABEL);
        rest = &rest[at + TALOS_KEY_LABEL.len()..];
    }
    out.extend_from_slice(rest);
    out
}
