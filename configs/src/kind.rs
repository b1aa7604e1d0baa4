//! Kinds of configuration files.

/// Kind of a configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Scenario with or without an agent: `goodput train`, `goodput eval`.
    Experiment,
    /// Clusters that lend each other servers: `goodput federate`.
    Federation,
    /// Study of forecasters on a load series: `goodput forecast`.
    ForecastStudy,
    /// Study of what a forecast is worth to an autoscaler: `goodput forecast worth`.
    WorthStudy,
    /// Forecasts as a service: `goodput forecast serve`.
    ForecastServer,
    /// Forecaster to train: `goodput train`.
    ForecasterTraining,
    /// Live cluster that a policy drives: `goodput live run`.
    Deployment,
    /// Agent of one node of a live cluster: `goodput live agent`.
    NodeAgent,
}

impl Kind {
    /// Every kind of file, in the order of declaration.
    pub const ALL: [Self; 8] = [
        Self::Experiment,
        Self::Federation,
        Self::ForecastStudy,
        Self::WorthStudy,
        Self::ForecastServer,
        Self::ForecasterTraining,
        Self::Deployment,
        Self::NodeAgent,
    ];

    /// Name of the kind, which is also the name of its schema: `configs/schema/NAME.schema.json`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Experiment => "experiment",
            Self::Federation => "federation",
            Self::ForecastStudy => "forecast",
            Self::WorthStudy => "worth",
            Self::ForecastServer => "forecast-server",
            Self::ForecasterTraining => "forecaster",
            Self::Deployment => "deployment",
            Self::NodeAgent => "node-agent",
        }
    }

    /// Name of the file of the schema, in `configs/schema`.
    pub fn schema_file(self) -> String {
        format!("{}.schema.json", self.name())
    }

    /// Heading of the kind in the plural.
    pub const fn heading(self) -> &'static str {
        match self {
            Self::Experiment => "Experiments",
            Self::Federation => "Federations",
            Self::ForecastStudy => "Forecast studies",
            Self::WorthStudy => "Studies of what a forecast is worth",
            Self::ForecastServer => "Forecasts as a service",
            Self::ForecasterTraining => "Forecasters to train",
            Self::Deployment => "Deployments",
            Self::NodeAgent => "Node agents",
        }
    }

    /// Kind called `name`.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Kind of a file, by the keys at its top level. `None` for a file with none of the keys that tell kinds
    /// apart.
    pub fn of(has: impl Fn(&str) -> bool) -> Option<Self> {
        match () {
            // A deployment may measure the loads of its services by Prometheus.
            () if has("prometheus") && !has("engine") && !has("policy") => Some(Self::ForecastServer),
            () if has("loads") => Some(Self::WorthStudy),
            () if has("clusters") => Some(Self::Federation),
            () if has("forecaster") && ["series", "sources", "synthetic"].into_iter().any(&has) => {
                Some(Self::ForecasterTraining)
            }
            () if has("series") => Some(Self::ForecastStudy),
            () if has("engine") || has("policy") => Some(Self::Deployment),
            () if has("state_dir") || has("checkpoint_root") || has("listen") => Some(Self::NodeAgent),
            () if ["cluster", "workload", "environment", "agent"].into_iter().any(&has) => Some(Self::Experiment),
            () => None,
        }
    }

    /// Advice for a file without any key that tells the kind.
    pub(crate) fn overview() -> &'static str {
        "the keys at the top tell the kind of a file: [cluster] and [workload] make an experiment, [[clusters]] a \
         federation, [series] a study of forecasters, [[loads]] a study of what a forecast is worth, [series] or \
         [[sources]] with [forecaster] a forecaster to train, [prometheus] forecasts as a service, [engine] a \
         deployment, state_dir a node agent"
    }

    /// Advice for a file of this kind that does not parse.
    pub(crate) fn help(self) -> &'static str {
        match self {
            Self::Experiment => {
                "`goodput config schema` describes every key; `goodput config show FILE` fills in the defaults"
            }
            Self::Federation => "`goodput init scenario/cross-cluster` writes an example",
            Self::ForecastStudy => "`goodput init forecast/servegen` writes an example",
            Self::WorthStudy => "`goodput init forecast/worth` writes an example",
            Self::ForecastServer => "`goodput init forecast/serve` writes an example",
            Self::ForecasterTraining => "`goodput init forecast/nhits` writes an example",
            Self::Deployment => {
                "`goodput init live/slurm`, `live/kubernetes` and `live/agents` write examples; `goodput config schema \
                 deployment` describes every key"
            }
            Self::NodeAgent => "`goodput init live/node` writes an example with every key",
        }
    }

    /// Advice for a command that expected a file of another kind.
    pub(crate) fn advice(self) -> String {
        match self {
            Self::Experiment => "this file is an experiment: `goodput train FILE` or `goodput eval FILE`".into(),
            Self::Federation => "with [[clusters]] it is a federation: `goodput federate FILE`".into(),
            Self::ForecastStudy => {
                "with [series] it is a study of forecasters: `goodput forecast backtest FILE`".into()
            }
            Self::WorthStudy => {
                "with [[loads]] it is a study of what a forecast is worth: `goodput forecast worth FILE`".into()
            }
            Self::ForecastServer => {
                "with [prometheus] it is a server of forecasts: `goodput forecast serve FILE`".into()
            }
            Self::ForecasterTraining => "with [forecaster] it is a forecaster to train: `goodput train FILE`".into(),
            Self::Deployment => "with [engine] it is a deployment: `goodput live run FILE`".into(),
            Self::NodeAgent => "with state_dir it is a node agent: `goodput live agent --config FILE`".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deployment_that_measures_loads_is_a_deployment() {
        let of = |keys: &[&str]| Kind::of(|key| keys.contains(&key));
        assert_eq!(of(&["prometheus", "services", "engine"]), Some(Kind::Deployment));
        assert_eq!(of(&["prometheus", "services", "policy"]), Some(Kind::Deployment));
        assert_eq!(of(&["prometheus", "services", "listen"]), Some(Kind::ForecastServer));
    }
}
