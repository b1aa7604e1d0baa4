//! The integration tests of `cli`, one program: it is linked once, not once for each file.
mod advise;
mod cli;
mod dist;
mod env_serve;
mod external;
mod federate;
mod forecast;
mod init;
mod lone_binary;
mod presets;
mod reference;
mod slurm_arrays;
mod support;
mod sweep;
mod train_distributed;
mod train_forecaster;
mod ui;
