//! The integration tests of `forecast`, one program: it is linked once, not once for each file.
mod adaptive;
mod bench;
mod boosted;
mod etth1;
mod long_horizon;
mod neural;
mod neural_long_horizon;
mod properties;
mod real_series;
mod season;
