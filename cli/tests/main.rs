//! The integration tests of `cli`, one program: it is linked once, not once for each file.
mod advise;
mod cli;
mod env_serve;
mod external;
mod federate;
mod forecast;
mod init;
mod presets;
mod reference;
mod support;
mod sweep;
mod sweep_slurm;
mod train_forecaster;
