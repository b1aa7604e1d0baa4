//! The gRPC interface: the external scaler of KEDA, and the prediction plugin of Dynamo's planner.
//!
//! The messages are those of the published protocols, written by hand: no compiler of protocols is needed to build.

mod calls;
mod dynamo;
mod keda;

use std::sync::Arc;

use axum::Router;

use super::board::ServiceBoard;

/// Calls of the interface. A call that is not served is answered with the status `UNIMPLEMENTED`.
pub fn router(board: &Arc<ServiceBoard>) -> Router {
    keda::router(Arc::clone(board)).merge(dynamo::router(Arc::clone(board))).fallback(calls::unimplemented)
}
