//! Threads that step environments.

use std::mem;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// A pool of threads, and the process that they live in.
struct PoolOfProcess {
    threads: ThreadPool,
    process: u32,
}

/// Threads that step environments; they are started in every process that steps, because a fork leaves them behind.
pub struct Threads {
    count: usize,
    pool: Option<PoolOfProcess>,
}

impl Threads {
    /// `count` threads, which start with the first step. One thread is the caller's own.
    pub fn new(count: usize) -> Self {
        Self { count, pool: None }
    }

    /// The pool of this process; `None` for one thread.
    ///
    /// # Errors
    /// The threads cannot be started.
    pub fn here(&mut self) -> PyResult<Option<&ThreadPool>> {
        if self.count < 2 {
            return Ok(None);
        }
        let process = std::process::id();
        if let Some(other) = self.pool.take_if(|pool| pool.process != process) {
            // Its threads are in the parent, so that there is nothing here to end.
            mem::forget(other);
        }
        if self.pool.is_none() {
            let threads = ThreadPoolBuilder::new().num_threads(self.count).build();
            let threads =
                threads.map_err(|error| PyRuntimeError::new_err(format!("threads = {}: {error}", self.count)))?;
            self.pool = Some(PoolOfProcess { threads, process });
        }
        Ok(self.pool.as_ref().map(|pool| &pool.threads))
    }
}
