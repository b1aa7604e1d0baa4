//! Entry to a server: the certificate, if any, that each side shows.

use tokio_rustls::TlsAcceptor;

use super::identity::Reloaded;

/// Entry to a server.
pub enum Door {
    /// HTTP without encryption.
    Plain,
    /// TLS: the server shows a certificate, and peers show none.
    Tls(Reloaded<TlsAcceptor>),
    /// Mutual TLS: a peer that does not show a certificate with the name `peer` is not answered.
    Mutual {
        /// Identity of the server, and the authority of its peers.
        identity: Reloaded<TlsAcceptor>,
        /// Name in the certificate of the peer.
        peer: String,
    },
}
