//! Files that ship: the folders of `configs`, for programs that are installed without them.

use std::path::Path;

use crate::names::nearest;

/// A configuration file that ships.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShippedConfig {
    /// Folder and name without its ending: `experiment/quickstart`.
    pub name: &'static str,
    /// Content of the file.
    pub text: &'static str,
}

const fn shipped(name: &'static str, text: &'static str) -> ShippedConfig {
    ShippedConfig { name, text }
}

/// Every file that ships: experiments, scenarios, leaderboards, studies of forecasters, and live deployments.
#[rustfmt::skip] // a line a file
pub const SHIPPED: &[ShippedConfig] = &[
    shipped("experiment/backfill", include_str!("../experiment/backfill.toml")),
    shipped("experiment/capacity", include_str!("../experiment/capacity.toml")),
    shipped("experiment/elastic", include_str!("../experiment/elastic.toml")),
    shipped("experiment/elastic-16", include_str!("../experiment/elastic-16.toml")),
    shipped("experiment/expert-iteration", include_str!("../experiment/expert-iteration.toml")),
    shipped("experiment/faults", include_str!("../experiment/faults.toml")),
    shipped("experiment/headroom", include_str!("../experiment/headroom.toml")),
    shipped("experiment/headroom-days", include_str!("../experiment/headroom-days.toml")),
    shipped("experiment/headroom-restarts", include_str!("../experiment/headroom-restarts.toml")),
    shipped("experiment/headroom-types", include_str!("../experiment/headroom-types.toml")),
    shipped("experiment/heterogeneous", include_str!("../experiment/heterogeneous.toml")),
    shipped("experiment/heterogeneous-ppo", include_str!("../experiment/heterogeneous-ppo.toml")),
    shipped("experiment/heterogeneous-tpu", include_str!("../experiment/heterogeneous-tpu.toml")),
    shipped("experiment/hold", include_str!("../experiment/hold.toml")),
    shipped("experiment/linear", include_str!("../experiment/linear.toml")),
    shipped("experiment/live", include_str!("../experiment/live.toml")),
    shipped("experiment/llm-services", include_str!("../experiment/llm-services.toml")),
    shipped("experiment/mixed", include_str!("../experiment/mixed.toml")),
    shipped("experiment/offline", include_str!("../experiment/offline.toml")),
    shipped("experiment/offline-ppo", include_str!("../experiment/offline-ppo.toml")),
    shipped("experiment/plan-ahead", include_str!("../experiment/plan-ahead.toml")),
    shipped("experiment/ppo-arrivals", include_str!("../experiment/ppo-arrivals.toml")),
    shipped("experiment/quickstart", include_str!("../experiment/quickstart.toml")),
    shipped("experiment/restart-costs", include_str!("../experiment/restart-costs.toml")),
    shipped("experiment/set-encoder", include_str!("../experiment/set-encoder.toml")),
    shipped("experiment/slow-restarts", include_str!("../experiment/slow-restarts.toml")),
    shipped("experiment/tenants", include_str!("../experiment/tenants.toml")),
    shipped("scenario/allocation-modes", include_str!("../scenario/allocation-modes.toml")),
    shipped("scenario/autoscaling", include_str!("../scenario/autoscaling.toml")),
    shipped("scenario/autoscaling-jobs", include_str!("../scenario/autoscaling-jobs.toml")),
    shipped("scenario/burst", include_str!("../scenario/burst.toml")),
    shipped("scenario/capacity", include_str!("../scenario/capacity.toml")),
    shipped("scenario/cluster-size-study", include_str!("../scenario/cluster-size-study.toml")),
    shipped("scenario/crash-loop", include_str!("../scenario/crash-loop.toml")),
    shipped("scenario/cross-cluster", include_str!("../scenario/cross-cluster.toml")),
    shipped("scenario/diurnal-loaning", include_str!("../scenario/diurnal-loaning.toml")),
    shipped("scenario/elastic-flood", include_str!("../scenario/elastic-flood.toml")),
    shipped("scenario/expenses", include_str!("../scenario/expenses.toml")),
    shipped("scenario/faults", include_str!("../scenario/faults.toml")),
    shipped("scenario/fragmentation", include_str!("../scenario/fragmentation.toml")),
    shipped("scenario/frugal-services", include_str!("../scenario/frugal-services.toml")),
    shipped("scenario/heterogeneous", include_str!("../scenario/heterogeneous.toml")),
    shipped("scenario/idle-inference", include_str!("../scenario/idle-inference.toml")),
    shipped("scenario/job-burst", include_str!("../scenario/job-burst.toml")),
    shipped("scenario/key-jobs", include_str!("../scenario/key-jobs.toml")),
    shipped("scenario/lending", include_str!("../scenario/lending.toml")),
    shipped("scenario/lending-real", include_str!("../scenario/lending-real.toml")),
    shipped("scenario/lending-slow", include_str!("../scenario/lending-slow.toml")),
    shipped("scenario/llm-services", include_str!("../scenario/llm-services.toml")),
    shipped("scenario/llm-training", include_str!("../scenario/llm-training.toml")),
    shipped("scenario/long-jobs", include_str!("../scenario/long-jobs.toml")),
    shipped("scenario/mixed-types", include_str!("../scenario/mixed-types.toml")),
    shipped("scenario/priority-ageing", include_str!("../scenario/priority-ageing.toml")),
    shipped("scenario/quota-adaptation", include_str!("../scenario/quota-adaptation.toml")),
    shipped("scenario/shared-cards", include_str!("../scenario/shared-cards.toml")),
    shipped("scenario/two-tenants-attack", include_str!("../scenario/two-tenants-attack.toml")),
    shipped("scenario/two-tenants-flood", include_str!("../scenario/two-tenants-flood.toml")),
    shipped("scenario/waste", include_str!("../scenario/waste.toml")),
    shipped("leaderboard/elasticflow", include_str!("../leaderboard/elasticflow.toml")),
    shipped("leaderboard/pollux", include_str!("../leaderboard/pollux.toml")),
    shipped("leaderboard/sia", include_str!("../leaderboard/sia.toml")),
    shipped("forecast/global", include_str!("../forecast/global.toml")),
    shipped("forecast/nhits", include_str!("../forecast/nhits.toml")),
    shipped("forecast/sample", include_str!("../forecast/sample.toml")),
    shipped("forecast/servegen", include_str!("../forecast/servegen.toml")),
    shipped("forecast/serve", include_str!("../forecast/serve.toml")),
    shipped("forecast/worth", include_str!("../forecast/worth.toml")),
    shipped("live/agents", include_str!("../live/agents.toml")),
    shipped("live/kubernetes", include_str!("../live/kubernetes.toml")),
    shipped("live/node", include_str!("../live/node.toml")),
    shipped("live/slurm", include_str!("../live/slurm.toml")),
];

impl ShippedConfig {
    /// The file of a name: with its folder, or the first of that name without. `forecast` is the study of the sample.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        let name = if name == "forecast" { "forecast/sample" } else { name };
        let exact = SHIPPED.iter().find(|config| config.name == name);
        exact.or_else(|| SHIPPED.iter().find(|config| config.stem() == name))
    }

    /// Name without its folder.
    pub fn stem(&self) -> &'static str {
        self.name.split_once('/').map_or(self.name, |(_, stem)| stem)
    }

    /// Folder of the file.
    pub fn folder(&self) -> &'static str {
        self.name.split_once('/').map_or("", |(folder, _)| folder)
    }

    /// First sentence of the comment that begins the file.
    pub fn about(&self) -> String {
        let comment = self.own_lines().map_while(|line| line.strip_prefix('#')).map(str::trim);
        let words: Vec<&str> = comment.collect();
        let text = words.join(" ");
        text.split(". ").next().unwrap_or_default().trim_end_matches('.').to_owned()
    }

    /// Text for another place than the repository: without the line that names the schema beside it.
    pub fn elsewhere(&self) -> String {
        self.own_lines().map(|line| line.to_owned() + "\n").collect()
    }

    fn own_lines(&self) -> impl Iterator<Item = &'static str> {
        self.text.lines().filter(|line| !line.starts_with("#:schema"))
    }
}

/// Advice for a configuration file that is not at `path`: the command that writes the file that ships under this name,
/// or under a near one.
pub fn where_to_get(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let folder = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let exact = ShippedConfig::by_name(&format!("{folder}/{stem}")).or_else(|| ShippedConfig::by_name(&stem));
    let near = || nearest(&stem, SHIPPED.iter().map(ShippedConfig::stem)).and_then(ShippedConfig::by_name);
    match exact.or_else(near) {
        Some(config) => format!(
            "`goodput init {}` writes the file {}.toml that ships; `goodput init` lists all that do",
            config.name,
            config.stem()
        ),
        None => "`goodput init` lists the files that ship, and `goodput init NAME` writes one of them".to_owned(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_file_of_the_folders_ships() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut found = BTreeSet::new();
        for folder in ["experiment", "scenario", "leaderboard", "forecast", "live"] {
            for entry in fs::read_dir(root.join(folder)).unwrap() {
                let path = entry.unwrap().path();
                found.insert(format!("{folder}/{}", path.file_stem().unwrap().to_str().unwrap()));
            }
        }
        let shipped: BTreeSet<String> = SHIPPED.iter().map(|config| config.name.to_owned()).collect();
        assert_eq!(shipped, found);
        for config in SHIPPED {
            assert!(!config.about().is_empty(), "{} begins without a comment", config.name);
            assert_eq!(ShippedConfig::by_name(config.name), Some(config));
        }
        assert_eq!(ShippedConfig::by_name("quickstart").unwrap().name, "experiment/quickstart");
    }

    #[test]
    fn a_file_that_is_missing_is_one_that_ships() {
        let names = |path: &str| where_to_get(Path::new(path)).split('`').nth(1).unwrap().to_owned();
        assert_eq!(names("configs/scenario/faults.toml"), "goodput init scenario/faults");
        assert_eq!(names("faults.toml"), "goodput init experiment/faults");
        assert_eq!(names("/home/me/quikstart.toml"), "goodput init experiment/quickstart");
        assert_eq!(names("my-own.toml"), "goodput init");
    }
}
