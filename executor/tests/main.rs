//! The integration tests of `executor`, one program: it is linked once, not once for each file.
mod agent;
mod agent_clients;
mod agent_security;
mod capacity;
mod daemon;
mod drills;
mod engine_agents;
mod high_availability;
mod interface;
mod live_services;
mod nodes;
mod nvml_library;
mod observation;
mod replica;
mod services;
mod slurm;
mod slurm_services;
