//! Ed25519 authorities and leafs as Talos makes them, from randomness and a time that were passed in.

use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SanType, SerialNumber,
};
use rustls::pki_types::PrivatePkcs8KeyDer;

/// Where bytes come from that nobody can guess.
pub(crate) type Random<'a> = dyn FnMut(&mut [u8]) + 'a;

/// What stands before the 32 bytes of an Ed25519 key in PKCS#8 (RFC 8410).
const ED25519_PKCS8: [u8; 16] = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];

/// A clock that lags must not make a certificate invalid.
const BACKDATED: Duration = Duration::from_secs(3600);
/// Talos' lifetimes: ten years for an authority, a year for a client, a day for a server.
const AUTHORITY_LIFETIME: Duration = Duration::from_secs(87_600 * 3600);
const CLIENT_LIFETIME: Duration = Duration::from_secs(365 * 24 * 3600);
/// A demo that stands for a week must not lose its nodes, since nothing here renews a server's certificate.
const SERVER_LIFETIME: Duration = Duration::from_secs(365 * 24 * 3600);

/// An authority that can issue.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) certificate: String,
    /// PKCS#8 under Talos' own label.
    pub(crate) key: String,
}

/// A leaf.
pub(crate) struct Leaf {
    pub(crate) der: Vec<u8>,
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new(
        organization: &str,
        now: SystemTime,
        random: &mut Random<'_>,
    ) -> Result<Self, rcgen::Error> {
        let key = key(random)?;
        let mut params = params(organization, "", now, AUTHORITY_LIFETIME, random);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign];
        let certificate = params.self_signed(&key)?.pem();
        let pem = talos_label(&key.serialize_pem());
        Ok(Self { issuer: Issuer::new(params, key), certificate, key: pem })
    }

    pub(crate) fn client(
        &self,
        role: &str,
        now: SystemTime,
        random: &mut Random<'_>,
    ) -> Result<Leaf, rcgen::Error> {
        let mut params = params(role, "", now, CLIENT_LIFETIME, random);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let leaf = self.leaf(params, random)?;
        Ok(Leaf { key: talos_label(&leaf.key), ..leaf })
    }

    pub(crate) fn server(
        &self,
        name: &str,
        ips: &[std::net::IpAddr],
        now: SystemTime,
        random: &mut Random<'_>,
    ) -> Result<Leaf, rcgen::Error> {
        let mut params = params("", name, now, SERVER_LIFETIME, random);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.subject_alt_names = ips.iter().copied().map(SanType::IpAddress).collect();
        self.leaf(params, random)
    }

    fn leaf(&self, mut params: CertificateParams, random: &mut Random<'_>) -> Result<Leaf, rcgen::Error> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let key = key(random)?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Leaf { der: certificate.der().to_vec(), certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

/// A key alone, in PEM.
pub(crate) fn key_pem(random: &mut Random<'_>) -> Result<String, rcgen::Error> {
    Ok(key(random)?.serialize_pem())
}

fn key(random: &mut Random<'_>) -> Result<KeyPair, rcgen::Error> {
    let mut der = [0; ED25519_PKCS8.len() + 32];
    der[..ED25519_PKCS8.len()].copy_from_slice(&ED25519_PKCS8);
    random(&mut der[ED25519_PKCS8.len()..]);
    KeyPair::try_from(&PrivatePkcs8KeyDer::from(&der[..]))
}

fn params(
    organization: &str,
    name: &str,
    now: SystemTime,
    lifetime: Duration,
    random: &mut Random<'_>,
) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    for (kind, text) in [(DnType::OrganizationName, organization), (DnType::CommonName, name)] {
        if !text.is_empty() {
            params.distinguished_name.push(kind, text);
        }
    }
    let mut serial = [0; 16];
    random(&mut serial);
    serial[0] &= 0x7f;
    params.serial_number = Some(SerialNumber::from_slice(&serial));
    params.not_before = now.checked_sub(BACKDATED).unwrap_or(now).into();
    params.not_after = now.checked_add(lifetime).unwrap_or(now).into();
    params
}

/// Talos' library labels Ed25519 keys in a way of its own; the content is PKCS#8 all the same.
fn talos_label(pem: &str) -> String {
    pem.replace("PRIVATE KEY", "ED25519 PRIVATE KEY")
}
