//! The one HTTP server of this crate: every port has its limits on connections and on time, and
//! TLS where it is asked for.
//!
//! - [`serve`]: HTTP/1.1; [`serve_grpc`]: HTTP/2.
//! - [`Door`]: plain HTTP, TLS, or TLS with certificates on both sides.
//! - [`Connection`]: the side that asks.
//! - [`visitors`]: connections by state; those that give way when there are too many.
//! - [`identity`]: certificates, read again when their files change.

mod connection;
mod door;
pub mod identity;
pub mod visitors;

use std::convert::Infallible;
use std::net::{IpAddr, Ipv6Addr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use hyper::Request;
use hyper::body::{Body as _, Bytes, Frame, Incoming, SizeHint};
use hyper::server::conn::{http1, http2};
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

pub use connection::{Connection, ConnectionError};
pub use door::Door;
use visitors::{Visit, Visitors};

/// Time that a peer has for its TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(2);

/// Time that a peer has for the headers of a request, and for which a connection may lie idle.
const HEADERS: Duration = Duration::from_secs(5);

/// Most bytes of headers, and of a body that is not read yet.
const BUFFER: usize = 64 * 1024;

/// Most calls at a time on one connection of HTTP/2. KEDA has one connection, on which every object that waits for a
/// push holds a call.
const CALLS: u32 = 4096;

/// Time after which the peer of a connection of HTTP/2 is asked whether it is still there.
const STILL_THERE: Duration = Duration::from_secs(30);

/// Pause where the system has no file descriptor left for a new connection.
const NO_DESCRIPTOR: Duration = Duration::from_millis(20);

/// Version of HTTP that a port speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Http1,
    Http2,
}

/// Serves `router` on `listener` by HTTP/1.1 for ever. Connections end with the future.
pub async fn serve(listener: TcpListener, door: Door, router: Router) {
    accept(listener, door, Protocol::Http1, router).await;
}

/// Serves `router` on `listener` for ever by HTTP/2 from the first byte on, as clients of gRPC speak it. Connections
/// end with the future.
pub async fn serve_grpc(listener: TcpListener, door: Door, router: Router) {
    accept(listener, door, Protocol::Http2, router).await;
}

async fn accept(listener: TcpListener, door: Door, protocol: Protocol, router: Router) {
    let visitors = Visitors::of_this_process();
    let door = Arc::new(door);
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok((stream, peer)) = listener.accept().await else {
            visitors.make_room();
            tokio::time::sleep(NO_DESCRIPTOR).await;
            continue;
        };
        let Some(visit) = visitors.enter(neighbourhood(peer.ip())) else { continue };
        let (door, router) = (Arc::clone(&door), router.clone());
        connections.spawn(async move {
            let visit = Arc::new(visit);
            tokio::select! {
                () = visit.told_to_leave() => {}
                () = receive(stream, &door, protocol, router, &visit) => {}
            }
        });
    }
}

/// Address by which connections are counted: an IPv6 host has a whole network of addresses.
fn neighbourhood(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
        address => address,
    }
}

/// One connection, from its handshake to its end.
async fn receive(stream: TcpStream, door: &Door, protocol: Protocol, router: Router, visit: &Arc<Visit<IpAddr>>) {
    // Answers are small, and each is written at once.
    let _ = stream.set_nodelay(true);
    match door {
        Door::Plain => answer(stream, protocol, router, Arc::clone(visit)).await,
        Door::Tls(identity) => {
            let shaken = timeout(HANDSHAKE, identity.get().accept(stream)).await;
            if let Ok(Ok(stream)) = shaken {
                answer(stream, protocol, router, Arc::clone(visit)).await;
            }
        }
        Door::Mutual { identity, peer } => {
            let shaken = timeout(HANDSHAKE, identity.get().accept(stream)).await;
            let Ok(Ok(stream)) = shaken else { return };
            if identity::is_named(stream.get_ref().1.peer_certificates(), peer) {
                visit.is_trusted();
                answer(stream, protocol, router, Arc::clone(visit)).await;
            }
        }
    }
}

async fn answer(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    protocol: Protocol,
    router: Router,
    visit: Arc<Visit<IpAddr>>,
) {
    let service = service_fn(move |request: Request<Incoming>| {
        let (router, visit) = (TowerToHyperService::new(router.clone()), Arc::clone(&visit));
        async move {
            if request.body().is_end_stream() {
                visit.works();
            }
            let arriving = |body| Body::new(Arriving { body, visit: Arc::clone(&visit) });
            let answer: Result<Response, Infallible> = router.call(request.map(arriving)).await;
            visit.waits();
            answer
        }
    });
    let stream = TokioIo::new(stream);
    // A peer that goes away asks again.
    let _ = match protocol {
        Protocol::Http1 => {
            let mut server = http1::Builder::new();
            server.timer(TokioTimer::new()).header_read_timeout(HEADERS).max_buf_size(BUFFER);
            server.serve_connection(stream, service).await
        }
        Protocol::Http2 => {
            let mut server = http2::Builder::new(TokioExecutor::new());
            server.timer(TokioTimer::new()).max_concurrent_streams(CALLS).keep_alive_interval(STILL_THERE);
            server.serve_connection(stream, service).await
        }
    };
}

/// Body of a request that is on its way. The connection is at work when all of the body is there.
struct Arriving {
    body: Incoming,
    visit: Arc<Visit<IpAddr>>,
}

impl hyper::body::Body for Arriving {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if matches!(polled, Poll::Ready(None)) || self.body.is_end_stream() {
            self.visit.works();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
