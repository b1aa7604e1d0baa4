//! Assumption about how jobs of unknown applications scale, for a trace that does not tell it.
//!
//! A public trace says how long a job ran on the accelerators that it asked for, and not how long it would have run on
//! others. Such a job is rigid. An assumption gives it the behaviour of an application of the catalog: its elasticity,
//! its batch sizes and its throughput. The part of the application's training that it does is chosen so that it lasts
//! as long as in the trace, on the accelerators that it asked for and with a tuned batch size on the reference type.
//! Results then rest on the assumption, so it is stored in the metadata of the table, and commands print it.
//!
//! An assumption is the name of an application, `mixture`, or a TOML file with one of these for each name in the trace:
//!
//! ```toml
//! elasticflow-bert = "bert"
//! "ResNet-18 (batch size 32)" = "cifar10"
//! other = "mixture"          # jobs of other names, and jobs without one; without this line, they stay as they are
//! ```

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use goodput_env::job::WHOLE;

use crate::catalog::Catalog;
use crate::error::DataError;
use crate::fit::ideal_secs;
use crate::jobs::{JobRow, hash};

/// Word for a draw among all applications.
const MIXTURE: &str = "mixture";

/// Key of a file for names that it does not have.
const OTHER: &str = "other";

/// Most and least of an application's training that a job may do, in thousandths; what the job table can hold.
const WORK_MILLI: [f64; 2] = [1.0, 1e9];

/// Behaviour that jobs of unknown applications are assumed to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalingAssumption {
    /// Behaviour by name in the trace.
    named: BTreeMap<String, AssumedBehaviour>,
    /// Behaviour of all others; `None`: they stay as they are.
    other: Option<AssumedBehaviour>,
}

/// Behaviour of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
enum AssumedBehaviour {
    /// Behaviour of one application of the catalog, by its index.
    Application(u16),
    /// Behaviour of an application with an adapted batch size, drawn by the hash of the job's name, all with one
    /// probability.
    Mixture,
}

impl ScalingAssumption {
    /// Reads an assumption: the name of an application of `catalog`, `mixture`, or the path of a file.
    ///
    /// # Errors
    /// Where the file cannot be read or is not TOML of names, or a name is not in the catalog.
    pub fn read(text: &str, catalog: &Catalog) -> Result<Self, DataError> {
        let path = Path::new(text);
        if !path.is_file() {
            let other = Some(behaviour(text, path, catalog)?);
            return Ok(Self { named: BTreeMap::new(), other });
        }
        let content = fs::read_to_string(path).map_err(DataError::read(path))?;
        let mut names: BTreeMap<String, String> = toml::from_str(&content)
            .map_err(|error| DataError::Assumption { path: path.to_owned(), what: error.message().to_owned() })?;
        let other = names.remove(OTHER).map(|name| behaviour(&name, path, catalog)).transpose()?;
        let named = names.into_iter().map(|(name, known)| Ok((name, behaviour(&known, path, catalog)?)));
        Ok(Self { named: named.collect::<Result<_, DataError>>()?, other })
    }

    /// Gives a job the assumed behaviour, where its application is not in `catalog`. A job that the application cannot
    /// train at its size, a job on a part of an accelerator and a job without a duration stay as they are. Returns
    /// whether the job was changed.
    pub fn assume(&self, job: &mut JobRow, catalog: &Catalog) -> bool {
        let name = job.application.as_deref().unwrap_or_default();
        if catalog.index(name).is_some() || job.share.is_some() {
            return false;
        }
        let Some(behaviour) = self.named.get(name).or(self.other.as_ref()) else { return false };
        let index = match behaviour {
            AssumedBehaviour::Application(index) => usize::from(*index),
            AssumedBehaviour::Mixture => (hash(&job.job_id) % catalog.adaptive().len() as u64) as usize,
        };
        scaled(job, index, catalog).is_some()
    }

    /// The assumption in one line, for metadata and messages.
    pub fn describe(&self, catalog: &Catalog) -> String {
        let name = |behaviour: &AssumedBehaviour| match behaviour {
            AssumedBehaviour::Application(index) => catalog.applications[usize::from(*index)].name.clone(),
            AssumedBehaviour::Mixture => {
                let names: Vec<&str> = catalog.adaptive().iter().map(|of| of.name.as_str()).collect();
                format!("one of {} by the hash of the job's name", names.join(", "))
            }
        };
        let mut text = String::new();
        for (known, behaviour) in &self.named {
            let _ = write!(text, "{known} scales as {}; ", name(behaviour));
        }
        match &self.other {
            Some(behaviour) => _ = write!(text, "unknown applications scale as {}", name(behaviour)),
            None => text.push_str("other unknown applications are rigid"),
        }
        text
    }
}

fn behaviour(name: &str, path: &Path, catalog: &Catalog) -> Result<AssumedBehaviour, DataError> {
    if name == MIXTURE {
        return Ok(AssumedBehaviour::Mixture);
    }
    let unknown = || DataError::Assumption {
        path: PathBuf::from(path),
        what: format!("`{name}` is neither {MIXTURE}, nor a file, nor one of {}", catalog.names().join(", ")),
    };
    catalog.index(name).map(AssumedBehaviour::Application).ok_or_else(unknown)
}

/// Makes a job one of the application with this index; `None` where that cannot be.
fn scaled(job: &mut JobRow, index: usize, catalog: &Catalog) -> Option<()> {
    let application = &catalog.applications[index];
    let tuned = catalog.tuned(&application.name).iter().rev().find(|tuned| tuned.replicas <= job.gpus);
    let batch = tuned.map_or(application.limits.init, |tuned| tuned.batch_size);
    // A tuned batch of fewer replicas may be too small to be divided among more.
    let batch = batch.max(application.limits.min_local.saturating_mul(job.gpus)).min(application.limits.max);
    let ideal = ideal_secs(application, job.gpus, batch)?;
    let milli = job.duration?.as_secs_f64() / ideal * f64::from(WHOLE);
    if !(WORK_MILLI[0]..=WORK_MILLI[1]).contains(&milli) {
        return None;
    }
    job.application = Some(application.name.clone());
    job.work_milli = Some(milli.round() as u32);
    job.batch_size = Some(batch);
    (job.gpu_min, job.gpu_max, job.duration) = (None, None, None);
    Some(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use goodput_env::time::SimTime;

    use super::*;

    fn job(name: Option<&str>, gpus: u32) -> JobRow {
        let duration = Some(SimTime::from_secs(36_000));
        JobRow { job_id: "j".into(), application: name.map(Into::into), gpus, duration, ..JobRow::default() }
    }

    #[test]
    fn a_job_lasts_as_long_as_in_the_trace() {
        let catalog = Catalog::shipped();
        let assumption = ScalingAssumption::read("CIFAR10", catalog).unwrap();
        for gpus in [1, 2, 4, 8] {
            let mut row = job(Some("vgg16"), gpus);
            assert!(assumption.assume(&mut row, catalog));
            let application = catalog.get("cifar10").unwrap();
            let whole = ideal_secs(application, gpus, row.batch_size.unwrap()).unwrap();
            let secs = whole * f64::from(row.work_milli.unwrap()) / 1000.0;
            assert!((secs - 36_000.0).abs() <= whole / 2000.0 + 1e-6, "{gpus}: {secs}");
            assert_eq!((row.application.as_deref(), row.duration), (Some("cifar10"), None));
        }
    }

    #[test]
    fn a_file_names_applications_and_the_rest_stays() {
        let catalog = Catalog::shipped();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("scaling.toml");
        fs::write(&path, "vgg16 = \"imagenet\"\n").unwrap();
        let assumption = ScalingAssumption::read(path.to_str().unwrap(), catalog).unwrap();
        let (mut known, mut other, mut nameless) = (job(Some("vgg16"), 2), job(Some("gpt2"), 2), job(None, 2));
        assert!(assumption.assume(&mut known, catalog));
        assert!(!assumption.assume(&mut other, catalog) && !assumption.assume(&mut nameless, catalog));
        assert_eq!((known.application.as_deref(), other), (Some("imagenet"), job(Some("gpt2"), 2)));
        assert_eq!(assumption.describe(catalog), "vgg16 scales as imagenet; other unknown applications are rigid");
        fs::write(&path, "vgg16 = \"resnet\"\n").unwrap();
        let error = ScalingAssumption::read(path.to_str().unwrap(), catalog).unwrap_err().to_string();
        assert!(error.contains("`resnet` is neither mixture"), "{error}");
    }

    #[test]
    fn a_mixture_is_drawn_by_the_name_of_the_job() {
        let catalog = Catalog::shipped();
        let assumption = ScalingAssumption::read("mixture", catalog).unwrap();
        let drawn = |id: u32| {
            let mut row = JobRow { job_id: format!("job-{id}"), ..job(None, 1) };
            assumption.assume(&mut row, catalog);
            row.application
        };
        let names: std::collections::BTreeSet<_> = (0..200).map(drawn).collect();
        assert!(names.len() >= 5, "{names:?}");
        assert_eq!(drawn(7), drawn(7));
    }
}
