//! A connection that asks, and that is kept open between calls.

use http_body_util::{BodyExt, Full, Limited};
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;

/// Error of a connection or of its peer.
pub type ConnectionError = Box<dyn std::error::Error + Send + Sync>;

/// An open connection to a server; it ends with the value.
#[derive(Debug)]
pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
    driver: JoinHandle<()>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Connection {
    /// A connection over `stream`.
    ///
    /// # Errors
    /// The peer speaks no HTTP.
    pub async fn over<S>(stream: S) -> Result<Self, ConnectionError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        Ok(Self { sender, driver: tokio::spawn(async move { drop(connection.await) }) })
    }

    /// Status and body of the answer to a request, with a body of at most `largest` bytes. The
    /// connection comes back after a whole answer only: what is left of another would be read as
    /// the answer of the next call.
    ///
    /// # Errors
    /// The connection is closed, or the answer is too long.
    pub async fn ask(
        mut self,
        request: Request<Full<Bytes>>,
        largest: usize,
    ) -> Result<(u16, Bytes, Self), ConnectionError> {
        self.sender.ready().await?;
        let answer = self.sender.send_request(request).await?;
        let status = answer.status().as_u16();
        let answer = Limited::new(answer.into_body(), largest).collect().await?.to_bytes();
        Ok((status, answer, self))
    }
}
