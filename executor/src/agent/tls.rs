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
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use goodput_configs::live::name::JobName;
use goodput_configs::live::tls::TlsFiles;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    date_time_ymd,
};
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::clock::unix_ms;
use super::error::AgentError;
use crate::http::identity::{IdentityError, Reloaded, acceptor_for, authorities, certificates, private_key, provider};

/// Name in the daemon's certificate.
pub const DAEMON: &str = "goodput-daemon";

/// Name of the files with the certificate of the daemon's interface.
pub const INTERFACE: &str = "goodput-api";

/// Days for which certificates are good where no other number is asked for.
pub const DAYS: u32 = 5 * 365;

/// Days for which the certificate of an authority is good.
const AUTHORITY_DAYS: u32 = 10 * 365;

/// Makes certificates for nodes and for the daemon in `folder`, and the authority that signs them
/// where there is none yet. Existing ones of the same names are replaced.
///
/// # Errors
/// The folder cannot be written, or holds a key that is not one.
pub fn create(folder: &Path, nodes: &[JobName]) -> Result<(), AgentError> {
    Authority::open(folder)?.of_agents(nodes, DAYS)
}

/// A private authority: a folder with its key, and with the certificates that it has signed.
pub struct Authority {
    folder: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// The authority in `folder`, made where there is none.
    ///
    /// # Errors
    /// The folder cannot be written, or holds a key that is not one.
    pub fn open(folder: &Path) -> Result<Self, AgentError> {
        let failed = |error: rcgen::Error| AgentError::Setup(format!("certificates in {}: {error}", folder.display()));
        fs::create_dir_all(folder).map_err(AgentError::io(format!("make {}", folder.display())))?;
        let mut params = valid_for(CertificateParams::default(), AUTHORITY_DAYS);
        params.distinguished_name.push(DnType::CommonName, "goodput authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let path = folder.join("ca.key");
        let key = if path.exists() {
            let text = fs::read_to_string(&path).map_err(AgentError::io(format!("read {}", path.display())))?;
            KeyPair::from_pem(&text).map_err(failed)?
        } else {
            let key = KeyPair::generate().map_err(failed)?;
            let certificate = params.self_signed(&key).map_err(failed)?;
            write(&path, &key.serialize_pem(), 0o600)?;
            write(&folder.join("ca.pem"), &certificate.pem(), 0o644)?;
            key
        };
        Ok(Self { folder: folder.to_owned(), issuer: Issuer::new(params, key) })
    }

    /// Signs a certificate for each node and one for the daemon, good for so many days.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn of_agents(&self, nodes: &[JobName], days: u32) -> Result<(), AgentError> {
        for node in nodes {
            self.sign(node.as_str(), vec![node.to_string()], ExtendedKeyUsagePurpose::ServerAuth, days)?;
        }
        self.sign(DAEMON, vec![DAEMON.to_owned()], ExtendedKeyUsagePurpose::ClientAuth, days)
    }

    /// Signs the certificate of the daemon's interface, good for so many days. Clients reach the
    /// interface under `hosts`: names or IP addresses.
    ///
    /// # Errors
    /// The folder cannot be written, or a host is no name.
    pub fn of_interface(&self, hosts: &[String], days: u32) -> Result<(), AgentError> {
        self.sign(INTERFACE, hosts.to_vec(), ExtendedKeyUsagePurpose::ServerAuth, days)
    }

    /// Signs a certificate for each of these clients of the forecast server, good for so many days. No agent obeys
    /// them: an agent asks for the name of the daemon.
    ///
    /// # Errors
    /// The folder cannot be written, or a client has the name of the daemon or of another file in the folder.
    pub fn of_clients(&self, clients: &[JobName], days: u32) -> Result<(), AgentError> {
        if let Some(taken) = clients.iter().find(|name| [DAEMON, INTERFACE, "ca"].contains(&name.as_str())) {
            return Err(AgentError::Setup(format!("{taken} is not the name of a client: choose another name")));
        }
        let sign = |name: &JobName| {
            self.sign(name.as_str(), vec![name.to_string()], ExtendedKeyUsagePurpose::ClientAuth, days)
        };
        clients.iter().try_for_each(sign)
    }

    fn sign(
        &self,
        name: &str,
        hosts: Vec<String>,
        usage: ExtendedKeyUsagePurpose,
        days: u32,
    ) -> Result<(), AgentError> {
        let failed = |error: rcgen::Error| AgentError::Setup(format!("certificate of {name}: {error}"));
        let mut params = valid_for(CertificateParams::new(hosts).map_err(failed)?, days);
        params.distinguished_name.push(DnType::CommonName, name);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(failed)?;
        let files = TlsFiles::of(&self.folder, name);
        write(&files.key, &key.serialize_pem(), 0o600)?;
        write(&files.cert, &certificate.pem(), 0o644)
    }
}

/// From yesterday on, since clocks differ, for so many days from now.
fn valid_for(mut params: CertificateParams, days: u32) -> CertificateParams {
    let day = Duration::from_secs(86_400);
    let now = date_time_ymd(1970, 1, 1) + Duration::from_millis(unix_ms().max(0) as u64);
    (params.not_before, params.not_after) = (now - day, now + day * days);
    params
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
    acceptor_for(&files.cert, &files.key, Some(&files.ca), &[])
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
