//! Identities of daemon and nodes: a private authority, a certificate for each node, and one for
//! the daemon.
//!
//! A node's certificate is good for serving only and the daemon's for asking only, so a node cannot
//! command another. Both are checked for the name in them: the daemon speaks with the node it
//! means, and the agent obeys the daemon alone.

use std::fmt::Display;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use goodput_configs::live::name::JobName;
use goodput_configs::live::tls::TlsFiles;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    date_time_ymd,
};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{ClientConfig, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::clock::unix_ms;
use super::error::AgentError;
use crate::http::identity::{IdentityError, Reloaded, authorities, certificates, private_key, provider};

/// Name in the daemon's certificate.
pub const DAEMON: &str = "goodput-daemon";

/// Years for which certificates of nodes and of the daemon are good; the authority's is good for
/// twice as long.
const YEARS: i32 = 5;

/// Makes certificates for nodes and for the daemon in `folder`, and the authority that signs them
/// where there is none yet. Existing ones of the same names are replaced.
///
/// # Errors
/// The folder cannot be written, or holds a key that is not one.
pub fn create(folder: &Path, nodes: &[JobName]) -> Result<(), AgentError> {
    let failed = |error: rcgen::Error| AgentError::Setup(format!("certificates in {}: {error}", folder.display()));
    fs::create_dir_all(folder).map_err(AgentError::io(format!("make {}", folder.display())))?;
    let year = 1970 + (unix_ms() / 31_556_952_000) as i32;
    let mut authority = CertificateParams::default();
    authority.distinguished_name.push(DnType::CommonName, "goodput authority");
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    authority.not_before = date_time_ymd(year, 1, 1);
    authority.not_after = date_time_ymd(year + 2 * YEARS, 1, 1);

    let ca_key = folder.join("ca.key");
    let key = if ca_key.exists() {
        let text = fs::read_to_string(&ca_key).map_err(AgentError::io(format!("read {}", ca_key.display())))?;
        KeyPair::from_pem(&text).map_err(failed)?
    } else {
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = authority.self_signed(&key).map_err(failed)?;
        write(&ca_key, &key.serialize_pem(), 0o600)?;
        write(&folder.join("ca.pem"), &certificate.pem(), 0o644)?;
        key
    };
    let issuer = Issuer::new(authority, key);
    let nodes = nodes.iter().map(|node| (node.as_str(), ExtendedKeyUsagePurpose::ServerAuth));
    for (name, usage) in nodes.chain([(DAEMON, ExtendedKeyUsagePurpose::ClientAuth)]) {
        let mut params = CertificateParams::new([name.to_owned()]).map_err(failed)?;
        params.distinguished_name.push(DnType::CommonName, name);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![usage];
        params.not_before = date_time_ymd(year, 1, 1);
        params.not_after = date_time_ymd(year + YEARS, 1, 1);
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = params.signed_by(&key, &issuer).map_err(failed)?;
        let files = TlsFiles::of(folder, name);
        write(&files.key, &key.serialize_pem(), 0o600)?;
        write(&files.cert, &certificate.pem(), 0o644)?;
    }
    Ok(())
}

fn write(path: &Path, text: &str, mode: u32) -> Result<(), AgentError> {
    let new = path.with_extension("new");
    let open = || {
        let _ = fs::remove_file(&new);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&new)?;
        file.write_all(text.as_bytes())?;
        fs::rename(&new, path)
    };
    open().map_err(AgentError::io(format!("write {}", path.display())))
}

/// The agent's side: asks for a certificate of the authority.
pub(super) fn acceptor(files: &TlsFiles) -> Result<Reloaded<TlsAcceptor>, IdentityError> {
    reloaded(files, |files| {
        let wrong = |error: &dyn Display| IdentityError::of(&files.cert, error);
        let roots = Arc::new(authorities(&files.ca)?);
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider()).build();
        let config = ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
        let config = config.map_err(|error| wrong(&error))?;
        let config = config.with_client_cert_verifier(verifier.map_err(|error| wrong(&error))?);
        let config = config.with_single_cert(certificates(&files.cert)?, private_key(&files.key)?);
        Ok(TlsAcceptor::from(Arc::new(config.map_err(|error| wrong(&error))?)))
    })
}

/// The daemon's side: shows its own certificate.
pub(crate) fn connector(files: &TlsFiles) -> Result<Reloaded<TlsConnector>, IdentityError> {
    reloaded(files, |files| {
        let wrong = |error: &dyn Display| IdentityError::of(&files.cert, error);
        let config = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
        let config = config.map_err(|error| wrong(&error))?.with_root_certificates(authorities(&files.ca)?);
        let config = config.with_client_auth_cert(certificates(&files.cert)?, private_key(&files.key)?);
        Ok(TlsConnector::from(Arc::new(config.map_err(|error| wrong(&error))?)))
    })
}

fn reloaded<T: Clone>(
    files: &TlsFiles,
    load: impl Fn(&TlsFiles) -> Result<T, IdentityError> + Send + Sync + 'static,
) -> Result<Reloaded<T>, IdentityError> {
    let of = files.clone();
    let paths = vec![files.ca.clone(), files.cert.clone(), files.key.clone()];
    Reloaded::new(paths, Box::new(move || load(&of)))
}
