//! Certificates and keys from files, read again when the files change: a certificate is renewed
//! without a restart.

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use thiserror::Error;
use tokio_rustls::rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use tokio_rustls::rustls::{CertificateError, ClientConfig, Error, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// A certificate that ends within so many days is to be renewed.
const RENEW_DAYS: u32 = 30;

const DAY: Duration = Duration::from_secs(86_400);

/// Reason why a certificate or a key cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}: {problem}", path.display())]
pub struct IdentityError {
    /// File at fault.
    pub path: PathBuf,
    /// Fault of the file, and its remedy.
    pub problem: String,
}

impl IdentityError {
    /// Fault of `path`.
    pub(crate) fn of(path: &Path, problem: impl Display) -> Self {
        Self { path: path.to_owned(), problem: problem.to_string() }
    }
}

/// Reads a value from its files.
type Load<T> = Box<dyn Fn() -> Result<T, IdentityError> + Send + Sync>;

/// Time of change and length of each file; `None` where a file is missing.
type Stamps = Vec<Option<(SystemTime, u64)>>;

/// A value made of files, which is made again when one of the files has changed.
pub struct Reloaded<T> {
    files: Vec<PathBuf>,
    load: Load<T>,
    kept: Mutex<Kept<T>>,
}

struct Kept<T> {
    value: T,
    /// Files as they were when they were last read, whether or not they were good.
    stamps: Stamps,
}

impl<T: Clone> Reloaded<T> {
    /// The value that `load` makes of `files`.
    ///
    /// # Errors
    /// [`IdentityError`] of the first reading.
    pub fn new(files: Vec<PathBuf>, load: Load<T>) -> Result<Self, IdentityError> {
        let kept = Mutex::new(Kept { stamps: stamps(&files), value: load()? });
        Ok(Self { files, load, kept })
    }

    /// The value as the files now have it. Files that make no sense leave the value as it was.
    pub fn get(&self) -> T {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let now = stamps(&self.files);
        if now != kept.stamps {
            kept.stamps = now;
            match (self.load)() {
                Ok(value) => {
                    kept.value = value;
                    tracing::info!(files = ?self.files, "certificates were read again");
                }
                Err(error) => tracing::warn!(%error, "changed certificates are not used; the ones before still are"),
            }
        }
        kept.value.clone()
    }
}

fn stamps(files: &[PathBuf]) -> Stamps {
    let stamp = |path: &PathBuf| {
        let data = fs::metadata(path).ok()?;
        Some((data.modified().ok()?, data.len()))
    };
    files.iter().map(stamp).collect()
}

/// The server's side of TLS with the certificate and the key in these files; peers show none.
///
/// # Errors
/// [`IdentityError`] where a file cannot be read or the two do not belong together.
pub fn acceptor(certificate: &Path, key: &Path) -> Result<Reloaded<TlsAcceptor>, IdentityError> {
    acceptor_for(certificate, key, None, &[])
}

/// Protocol of gRPC over TLS; its clients insist on it (RFC 7301).
pub const GRPC: &[&[u8]] = &[b"h2"];

/// The server's side of TLS with the certificate and the key in these files. Where there are authorities `clients`,
/// peers show a certificate that one of them has signed. The server offers `protocols`, none for HTTP/1.1.
///
/// # Errors
/// [`IdentityError`] where a file cannot be read, or the certificate and the key do not belong together.
pub fn acceptor_for(
    certificate: &Path,
    key: &Path,
    clients: Option<&Path>,
    protocols: &[&[u8]],
) -> Result<Reloaded<TlsAcceptor>, IdentityError> {
    let files = [certificate, key].into_iter().chain(clients).map(Path::to_owned).collect();
    let (certificate, key, clients) = (certificate.to_owned(), key.to_owned(), clients.map(Path::to_owned));
    let protocols: Vec<Vec<u8>> = protocols.iter().map(|name| name.to_vec()).collect();
    let load = move || {
        let wrong = |error: &dyn Display| IdentityError::of(&certificate, error);
        let config = ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
        let config = config.map_err(|error| wrong(&error))?;
        let config = match &clients {
            None => config.with_no_client_auth(),
            Some(authority) => {
                let roots = Arc::new(authorities(authority)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider()).build();
                config.with_client_cert_verifier(verifier.map_err(|error| IdentityError::of(authority, error))?)
            }
        };
        let config = config.with_single_cert(certificates(&certificate)?, private_key(&key)?);
        let mut config = config.map_err(|error| wrong(&error))?;
        config.alpn_protocols.clone_from(&protocols);
        Ok(TlsAcceptor::from(Arc::new(config)))
    };
    Reloaded::new(files, Box::new(load))
}

/// The client's side of TLS: the authorities in the file `ca` sign the server's certificate, and the client shows none.
///
/// # Errors
/// [`IdentityError`] where the file holds no certificate.
pub fn connector(ca: &Path) -> Result<Reloaded<TlsConnector>, IdentityError> {
    let file = ca.to_owned();
    let load = move || {
        let config = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
        let config = config.map_err(|error| IdentityError::of(&file, error))?;
        let config = config.with_root_certificates(authorities(&file)?).with_no_client_auth();
        Ok(TlsConnector::from(Arc::new(config)))
    };
    Reloaded::new(vec![ca.to_owned()], Box::new(load))
}

/// The certificates in a file.
///
/// # Errors
/// [`IdentityError`] where there is none.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, IdentityError> {
    let found = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(IdentityError::of(path, "holds no certificate; make some with `goodput live certs`")),
        Err(error) => Err(unusable(path, "certificate", &error)),
    }
}

/// Sentence about certificates of a file that end within [`RENEW_DAYS`], or have ended, at the time
/// `now_ms`.
pub fn ends_soon(path: &Path, now_ms: i64) -> Option<String> {
    let now = Duration::from_millis(u64::try_from(now_ms).ok()?);
    let certificates = certificates(path).ok()?;
    let ended = |at: Duration| certificates.iter().any(|certificate| has_ended(certificate, at));
    let renew = "renew it by `goodput live certs` or by your authority; no restart is needed";
    if ended(now) {
        Some(format!("certificate {} has ended: {renew}", path.display()))
    } else if ended(now + RENEW_DAYS * DAY) {
        Some(format!("certificate {} ends within {RENEW_DAYS} days: {renew}", path.display()))
    } else {
        None
    }
}

/// Whether a certificate has ended at a time since the Unix epoch.
fn has_ended(certificate: &CertificateDer<'_>, at: Duration) -> bool {
    let Ok(parsed) = ParsedCertificate::try_from(certificate) else { return false };
    let algorithms = ring::default_provider().signature_verification_algorithms.all;
    let (at, none) = (UnixTime::since_unix_epoch(at), RootCertStore::empty());
    // The time is looked at before the authority, of which there is none here.
    let checked = verify_server_cert_signed_by_trust_anchor(&parsed, &none, &[], at, algorithms);
    matches!(
        checked,
        Err(Error::InvalidCertificate(CertificateError::Expired | CertificateError::ExpiredContext { .. }))
    )
}

/// The private key in a file.
///
/// # Errors
/// [`IdentityError`] where there is none.
pub fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, IdentityError> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| unusable(path, "private key", &error))
}

/// Fault of a PEM file that holds no usable `what`.
fn unusable(path: &Path, what: &str, error: &pem::Error) -> IdentityError {
    let problem = match error {
        pem::Error::Io(error) => format!("cannot be read: {error}"),
        pem::Error::NoItemsFound => format!("holds no {what}"),
        other => format!("holds no {what}: {other}"),
    };
    IdentityError::of(path, format!("{problem}; make certificates and keys with `goodput live certs`"))
}

/// The authorities in a file.
///
/// # Errors
/// [`IdentityError`] where there is none.
pub fn authorities(path: &Path) -> Result<RootCertStore, IdentityError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| IdentityError::of(path, error))?;
    }
    Ok(roots)
}

/// Whether a certificate that was verified names `name`.
pub fn is_named(chain: Option<&[CertificateDer<'_>]>, name: &str) -> bool {
    let Some(first) = chain.and_then(<[_]>::first) else { return false };
    match (ParsedCertificate::try_from(first), ServerName::try_from(name)) {
        (Ok(certificate), Ok(name)) => verify_server_name(&certificate, &name).is_ok(),
        _ => false,
    }
}

/// Cryptography of this program.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::tls::{Authority, INTERFACE};

    #[test]
    fn a_certificate_is_to_be_renewed_a_month_before_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::open(folder.path()).unwrap();
        let file = folder.path().join(format!("{INTERFACE}.pem"));
        let now = crate::machine::wall_ms();
        authority.of_interface(&["head".to_owned()], 100).unwrap();
        assert!(ends_soon(&file, now).is_none());
        let in_days = |days: i64| ends_soon(&file, now + days * 86_400_000).unwrap_or_default();
        assert_eq!(in_days(65), "");
        assert!(in_days(75).contains("within 30 days"), "{}", in_days(75));
        assert!(in_days(101).contains("has ended"), "{}", in_days(101));
    }
}
