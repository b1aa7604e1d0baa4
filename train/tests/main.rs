//! The integration tests of `train`, one program: it is linked once, not once for each file.
mod autoscaling;
mod composition;
mod distributed;
mod episodes;
mod evolution;
mod expenses;
mod guarantees;
mod offline;
mod queue;
mod resume;
mod shipped;
mod single_server;
mod support;
mod tenants;
mod toy;
mod toy_support;
mod zoo;
