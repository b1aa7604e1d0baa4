//! The integration tests of `configs`, one program: it is linked once, not once for each file.
mod experiment_fuzz;
mod live;
mod llm_services;
mod messages;
mod model_names;
mod policies;
mod presets;
mod reader;
mod schemas;
mod sweep;
