//! Inference services of a deployment, as its engine is told of them.

use goodput_configs::error::CheckError;
use goodput_configs::live::deployment::Deployment;
use goodput_configs::live::services::LiveServiceConfig;
use goodput_env::job::{JobRequest, JobSpec, Work};
use goodput_env::service::Service;
use goodput_env::time::SimTime;

use super::{ServiceSpec, Submission};
use crate::job::RetryBudget;

/// Inference service that a deployment declares: its terms, and the program of a replica.
#[derive(Clone, Debug, PartialEq)]
pub struct DeclaredService {
    /// Name of the service.
    pub name: String,
    /// Speed, objective and limits of the service.
    pub spec: ServiceSpec,
    /// A replica, as a job that is handed in.
    pub replica: Submission,
}

impl DeclaredService {
    /// Services of a deployment, in the order of its file.
    ///
    /// # Errors
    /// [`CheckError`] that names the service and the key.
    pub fn of(deployment: &Deployment) -> Result<Vec<Self>, CheckError> {
        let services = deployment.services()?;
        Ok(deployment.services.iter().zip(services).map(|(config, service)| Self::new(config, &service)).collect())
    }

    fn new(config: &LiveServiceConfig, service: &Service) -> Self {
        let request = JobRequest { name: config.name.clone(), gpus: config.gpus_per_replica, ..JobRequest::default() };
        let spec = JobSpec { request, work: Work::Fixed { duration: SimTime::ZERO } };
        let replica = Submission {
            tenant: config.tenant.clone(),
            environment: config.environment.clone(),
            directory: config.directory.clone(),
            grace_s: config.drain_secs.ceil() as u32,
            // A replica that fails is started again as long as its service is wanted.
            retry: RetryBudget { failures: u32::MAX, ..RetryBudget::default() },
            ..Submission::new(spec, config.command.clone())
        };
        Self { name: config.name.clone(), spec: ServiceSpec::of(service, &config.tenant), replica }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use goodput_configs::reader;

    use super::*;

    fn parse(engine: &str, service: &str) -> Result<Deployment, String> {
        let text = format!(
            "[engine.slurm]\n{engine}\n[policy]\nname = \"fifo+reactive\"\n[state]\ndirectory = \"/tmp\"\n[[services]]\nname = \"web\"\n\
             command = [\"serve\"]\nslo = {{ latency_ms = 100 }}\n{service}"
        );
        reader::parse("live.toml", &text).map_err(|error| error.message)
    }

    #[test]
    fn a_declared_service_is_a_job_that_is_started_again() {
        let settings = parse("reservation = \"web\"", "model = \"resnet-50\"\ndrain_secs = 2.5").unwrap();
        let service = &DeclaredService::of(&settings).unwrap()[0];
        assert_eq!((service.replica.grace_s, service.replica.retry.failures), (3, u32::MAX));
        assert!(service.spec.profiles.contains_key("t4") && service.spec.cold_start_ms > 0);
    }

    #[test]
    fn a_service_that_cannot_run_is_refused_with_its_key() {
        let reserved = "reservation = \"web\"";
        let speed = "profiles = { a100 = [[1, 10.0]] }\n";
        let with = |more: &str| format!("{speed}{more}");
        for (engine, service, key) in [
            ("", with(""), "engine.slurm.reservation"),
            ("reservation = \"web State=DOWN\"", with(""), "engine.slurm.reservation"),
            (reserved, String::new(), "services.profiles"),
            (reserved, with("min_replicas = 0"), "services.min_replicas"),
            (reserved, with("tenant = \"vision\""), "tenant"),
            (reserved, with("[[services]]\nname = \"web\"\ncommand = [\"x\"]\nslo = { latency_ms = 1 }"), "twice"),
        ] {
            let refused = parse(engine, &service).unwrap_err();
            assert!(refused.contains(key), "{key}: {refused}");
        }
    }
}
