//! The integration tests of `datasets`, one program: it is linked once, not once for each file.
mod accelerators;
mod catalog;
mod deepboot;
mod fuzz;
mod gavel;
mod import;
mod inspect;
mod job_csv;
mod memory;
mod openb;
mod parts;
mod shared;
mod sia;
mod store;
mod stream;
mod synth;
mod tiresias;
