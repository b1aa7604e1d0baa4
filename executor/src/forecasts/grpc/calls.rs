//! Calls of gRPC as handlers of a router: from a message to a message, or to a stream of them.

use std::future::{Ready, ready};

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use futures_util::Stream;
use prost::Message;
use tonic::Status;
use tonic::server::{Grpc, ServerStreamingService, UnaryService};
use tonic_prost::ProstCodec;

/// One message for one message.
struct Unary<F>(F);

impl<Q, A, F> UnaryService<Q> for Unary<F>
where
    F: Fn(Q) -> Result<A, Status>,
{
    type Response = A;
    type Future = Ready<Result<tonic::Response<A>, Status>>;

    fn call(&mut self, request: tonic::Request<Q>) -> Self::Future {
        ready((self.0)(request.into_inner()).map(tonic::Response::new))
    }
}

/// A stream of messages for one message.
struct Streaming<F>(F);

impl<Q, A, S, F> ServerStreamingService<Q> for Streaming<F>
where
    F: Fn(Q) -> Result<S, Status>,
    S: Stream<Item = Result<A, Status>>,
{
    type Response = A;
    type ResponseStream = S;
    type Future = Ready<Result<tonic::Response<S>, Status>>;

    fn call(&mut self, request: tonic::Request<Q>) -> Self::Future {
        ready((self.0)(request.into_inner()).map(tonic::Response::new))
    }
}

/// Answers `request` with the message that `answer` makes.
pub async fn unary<Q, A>(request: Request, answer: impl Fn(Q) -> Result<A, Status>) -> Response
where
    Q: Message + Default + Send + 'static,
    A: Message + Send + 'static,
{
    let mut grpc = Grpc::new(ProstCodec::<A, Q>::default());
    grpc.unary(Unary(answer), request).await.map(Body::new)
}

/// Answers `request` with the stream that `answer` makes.
pub async fn streaming<Q, A, S>(request: Request, answer: impl Fn(Q) -> Result<S, Status>) -> Response
where
    Q: Message + Default + Send + 'static,
    A: Message + Send + 'static,
    S: Stream<Item = Result<A, Status>> + Send + 'static,
{
    let mut grpc = Grpc::new(ProstCodec::<A, Q>::default());
    grpc.server_streaming(Streaming(answer), request).await.map(Body::new)
}

/// Answer to a call that is not served.
pub async fn unimplemented(request: Request) -> Response {
    let path = request.uri().path();
    Status::unimplemented(format!("{path} is not served here")).into_http()
}
