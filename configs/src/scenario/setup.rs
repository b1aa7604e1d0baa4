//! Scenarios by seed, from the tables of a file.

use std::sync::Arc;

use goodput_agents::compose::loaning::Sharing;
use goodput_datasets::speed_table::ShippedSpeeds;
use goodput_datasets::synth::Generator;
use goodput_datasets::{Catalog, read_workload};
use goodput_env::cluster::Cluster;
use goodput_env::gym::Layout;
use goodput_env::job::{JobRequest, Workload};
use goodput_env::model_names::rename;
use goodput_env::scenario::{Scenario, SimOptions};
use goodput_env::tenant::Tenants;
use goodput_env::tie_break::TieBreak;

use super::language::TokenService;
use super::{
    Burst, ClusterConfig, EnvironmentConfig, ForecasterConfig, LoaningConfig, ServiceConfig, SetupError, WindowsConfig,
    WorkloadConfig, bursts, card_sharing, faults, loaning, prepare_shares, rental, services, speeds,
};
use crate::error::CheckError;
use crate::tenants::{self, CohortConfig, TenantConfig};

/// Scenarios by seed.
#[derive(Clone, Debug)]
pub struct Setup {
    template: Scenario,
    source: Source,
    tenants: Vec<TenantConfig>,
    windows: Option<WindowsConfig>,
    services: services::Services,
    sharing: Arc<Sharing>,
    names_per_application: Option<u32>,
    tie_break: TieBreak,
}

#[derive(Clone, Debug)]
enum Source {
    Synthetic(Box<Generator>),
    Fixed(Arc<Workload>),
    Bursts(Vec<Burst>, Arc<Workload>),
}

/// Request of the first job that needs more accelerators than the cluster has, and so waits for ever.
pub fn too_large<'a>(cluster: &Cluster, workload: &'a Workload) -> Option<&'a JobRequest> {
    workload.jobs.iter().map(|job| &job.request).find(|request| request.min_gpus() > cluster.total_gpus())
}

/// Checks that every job of a file fits into the cluster.
fn check_sizes(cluster: &Cluster, workload: &Workload) -> Result<(), SetupError> {
    let Some(request) = too_large(cluster, workload) else { return Ok(()) };
    let value = format!("a file in which job {:?} needs {} accelerators", request.name, request.min_gpus());
    let most = cluster.total_gpus();
    let expected = format!("jobs of at most {most}, as the cluster has, or environment.horizon_secs to end a run");
    Err(SetupError::Value { key: "workload.file.path", value, expected })
}

impl Setup {
    /// Checks the tables and prepares what all seeds share.
    ///
    /// # Errors
    /// [`SetupError`] naming the key or the file.
    pub fn new(
        cluster: &ClusterConfig,
        workload: &WorkloadConfig,
        environment: &EnvironmentConfig,
    ) -> Result<Self, SetupError> {
        let catalog = Catalog::shipped();
        let mut cluster = Arc::new(cluster.build()?);
        let options = environment.options()?;
        if environment.type_actions && cluster.types.len() > Layout::MOST_TYPES {
            let expected = format!("false on a cluster of more than {} accelerator types", Layout::MOST_TYPES);
            return Err(SetupError::Value { key: "environment.type_actions", value: "true".into(), expected });
        }
        options.faults.as_ref().map_or(Ok(()), |model| faults::check_script(model, &cluster))?;
        options.rental.as_ref().map_or(Ok(()), |terms| rental::check_cluster(terms, &cluster))?;
        let (source, applications) = match workload {
            WorkloadConfig::Synthetic(config) => {
                (Source::Synthetic(Box::new(config.build(catalog)?)), catalog.applications.clone())
            }
            WorkloadConfig::File(file) => {
                let catalog = file.speeds.map_or(catalog, ShippedSpeeds::catalog);
                let loaded = read_workload(&file.path, catalog).map_err(|error| file.unread(error))?;
                let loaded = Arc::new(loaded.workload);
                (Source::Fixed(loaded.clone()), loaded.applications.clone())
            }
            WorkloadConfig::Bursts(bursts) => {
                let workload = bursts::scripted(bursts, &[])?;
                (Source::Bursts(bursts.clone(), Arc::new(workload)), Vec::new())
            }
        };
        let (key, prepared) = match &source {
            Source::Synthetic(generator) => {
                ("workload.synthetic", card_sharing::prepare_parts(&mut cluster, generator))
            }
            Source::Fixed(workload) => ("workload.file.path", prepare_shares(&mut cluster, workload)),
            Source::Bursts(_, workload) => ("workload.bursts", prepare_shares(&mut cluster, workload)),
        };
        prepared.map_err(|problem| CheckError::at(key, problem))?;
        let parts = match &source {
            Source::Synthetic(generator) => !generator.parts().is_empty(),
            Source::Fixed(workload) | Source::Bursts(_, workload) => {
                workload.jobs.iter().any(|job| job.request.share.is_some())
            }
        };
        if parts && options.rental.is_some() {
            return Err(rental::with_parts(key));
        }
        match &source {
            Source::Synthetic(generator) => speeds::check(&cluster, generator.trained())?,
            Source::Fixed(workload) => {
                speeds::known_speeds(&cluster, workload)?;
                if options.rental.is_some() && !workload.requests.is_empty() {
                    return Err(rental::with_inference("workload.file.path"));
                }
                if options.horizon.is_none() {
                    check_sizes(&cluster, workload)?;
                }
            }
            Source::Bursts(..) => {}
        }
        let empty = Arc::new(Workload::new(applications, Vec::new()));
        let windows = match (workload, &source) {
            (WorkloadConfig::File(file), Source::Fixed(loaded)) => {
                file.windows.as_ref().map_or(Ok(()), |windows| windows.check(loaded))?;
                file.windows
            }
            _ => None,
        };
        let template = Scenario::new(cluster, empty, options, 0);
        let tenants = Vec::new();
        let (services, sharing) = Default::default();
        let (names_per_application, tie_break) = (environment.names_per_application, environment.tie_break);
        Ok(Self { template, source, tenants, windows, services, sharing, names_per_application, tie_break })
    }

    /// With declared tenants, those of the workload in their order.
    ///
    /// # Errors
    /// [`SetupError`] naming the key, the tenant or the cohort, or a tenant of the workload that is
    /// not declared.
    pub fn with_tenants(mut self, tenants: &[TenantConfig], cohorts: &[CohortConfig]) -> Result<Self, SetupError> {
        let types: Vec<&str> = self.template.cluster.types.iter().map(|of| &*of.name).collect();
        let built = Arc::new(tenants::build(tenants, cohorts, &types)?);
        if let Some(allocation) = self.options().allocation {
            tenants::check_allocation(allocation, &built, &self.template.cluster)?;
        }
        if tenants.is_empty() {
            return Ok(self);
        }
        card_sharing::prepare_limits(&mut self.template.cluster, tenants)?;
        match &mut self.source {
            Source::Synthetic(generator) => {
                let found = generator.tenants().len();
                if found > tenants.len() {
                    return Err(SetupError::Value {
                        key: "tenants",
                        value: format!("{} declared", tenants.len()),
                        expected: format!("one [[tenants]] for each of the {found} tenants of the workload"),
                    });
                }
            }
            Source::Fixed(workload) => {
                let workload = Arc::make_mut(workload);
                bursts::assign(workload, tenants)?;
                workload.tenants = built.clone();
            }
            Source::Bursts(bursts, workload) => {
                let mut scripted = bursts::scripted(bursts, tenants)?;
                bursts::assign(&mut scripted, tenants)?;
                scripted.tenants = built.clone();
                *workload = Arc::new(scripted);
            }
        }
        let mut empty = Workload::clone(&self.template.workload);
        empty.tenants = built;
        self.template.workload = Arc::new(empty);
        self.check_limits()?;
        self.tenants = tenants.to_vec();
        Ok(self)
    }

    /// Checks that no job of the file waits for ever because of the limits of its tenant.
    fn check_limits(&self) -> Result<(), SetupError> {
        let (key, workload) = match &self.source {
            Source::Synthetic(_) => return Ok(()),
            Source::Fixed(workload) => ("workload.file.path", workload),
            Source::Bursts(_, workload) => ("workload.bursts", workload),
        };
        // A run that ends at its horizon may leave jobs behind.
        if self.options().horizon.is_some() {
            return Ok(());
        }
        let scenario = self.template.with_jobs(workload.clone(), 0);
        let Some((request, limit)) = scenario.first_limited() else { return Ok(()) };
        let problem = format!("{key}: job {:?} would wait for ever: {limit}", request.name);
        Err(CheckError { remedy: Some(limit.remedy()), ..CheckError::at(key, problem) }.into())
    }

    /// Setup with inference services beside the jobs.
    ///
    /// # Errors
    /// [`SetupError`] naming the service and the key or the file.
    pub fn with_services(mut self, services: &[ServiceConfig]) -> Result<Self, SetupError> {
        if self.template.options.rental.is_some() && !services.is_empty() {
            return Err(rental::with_inference("services"));
        }
        self.services = services::Services::new(services, &self.template.cluster)?;
        Ok(self)
    }

    /// Setup with services that share the cluster by the given terms and forecaster.
    ///
    /// # Errors
    /// [`SetupError`] naming the key or the file.
    pub fn with_sharing(mut self, loaning: &LoaningConfig, forecaster: &ForecasterConfig) -> Result<Self, SetupError> {
        self.sharing = Arc::new(loaning::sharing(loaning, forecaster, &self.services.of_seed(0))?);
        Ok(self)
    }

    /// Server of each service that runs a language model, by service.
    pub fn token_servers(&self) -> Vec<Option<Arc<TokenService>>> {
        self.services.servers()
    }

    /// Terms on which the services share the cluster.
    pub fn sharing(&self) -> &Arc<Sharing> {
        &self.sharing
    }

    /// The scenario of `seed`.
    pub fn scenario(&self, seed: u64) -> Arc<Scenario> {
        let workload = match &self.source {
            Source::Synthetic(generator) => {
                let mut workload = generator.generate(seed);
                // The declared tenants are no fewer than the generator's.
                if bursts::assign(&mut workload, &self.tenants).is_ok() {
                    workload.tenants = self.template.workload.tenants.clone();
                }
                Arc::new(workload)
            }
            Source::Fixed(workload) | Source::Bursts(_, workload) => workload.clone(),
        };
        let workload = match &self.windows {
            None => workload,
            Some(windows) => Arc::new(windows.of_seed(&workload, seed)),
        };
        let workload = match self.names_per_application {
            None => workload,
            Some(names) => {
                let mut workload = Workload::clone(&workload);
                rename(&mut workload, names, seed);
                Arc::new(workload)
            }
        };
        let workload = match self.tie_break {
            TieBreak::Trace => workload,
            other => {
                let mut workload = Workload::clone(&workload);
                other.arrange(&mut workload.jobs, seed);
                Arc::new(workload)
            }
        };
        let workload = match self.services.is_empty() {
            true => workload,
            false => Arc::new(Workload { services: self.services.of_seed(seed), ..(*workload).clone() }),
        };
        Arc::new(match self.names_per_application {
            // The speed tables of the template are those of the applications under their own names.
            Some(_) => Scenario::new(self.template.cluster.clone(), workload, self.options().clone(), seed),
            None => self.template.with_jobs(workload, seed),
        })
    }

    /// The options all scenarios share.
    pub fn options(&self) -> &SimOptions {
        &self.template.options
    }

    /// Tenants that the file declares.
    pub fn tenants(&self) -> &Tenants {
        &self.template.workload.tenants
    }

    /// The cluster all scenarios share.
    pub fn cluster(&self) -> &Cluster {
        &self.template.cluster
    }

    /// Names of the first `count` accelerator types of the cluster.
    pub fn type_names(&self, count: usize) -> Vec<String> {
        self.cluster().types.iter().take(count).map(|of| of.name.clone()).collect()
    }
}
