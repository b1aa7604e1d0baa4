//! `Environments`: environments of one experiment that step together.

use std::sync::Arc;

use goodput_agents::compose::loaning::Sharing;
use goodput_agents::policies::rounds::Decoder;
use goodput_configs::experiment::Experiment;
use goodput_configs::reader::{self, Document};
use goodput_configs::seeds::STREAMS;
use goodput_env::gym::{ClusterEnv, Cursor, Environment, Feature, Layout, ObservationMut, Player, ResetOptions};
use numpy::PyReadonlyArray1;
use pyo3::exceptions::{PyIndexError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::options::{OnForbidden, Options};
use crate::pictures::{self, Picture};
use crate::rows::Arrays;
use crate::screen;
use crate::seat::EnvironmentSeat;
use crate::threads::Threads;

/// Arguments of the constructor, in order, from which a pickled object is made again.
type Arguments =
    (String, String, Vec<String>, usize, usize, String, String, String, Option<f64>, bool, bool, Option<usize>);

/// Position of an environment: seed of its stream, number of episodes begun, and actions of the last one.
type Position = (u64, u64, Vec<u32>);

/// Facts of the experiment that concern the policies that play it.
pub struct PolicyFacts {
    /// Information and batch sizes under which policies are run.
    pub decoder: Decoder,
    /// Names of all accelerator types of the cluster.
    pub types: Vec<String>,
    /// Accelerators of the cluster.
    pub gpus: u32,
    /// Terms on which services share the cluster.
    pub sharing: Arc<Sharing>,
    /// The experiment in TOML with every default filled in.
    resolved: String,
}

/// Environments of one experiment that step together.
#[pyclass(module = "goodput_gym._core")]
pub struct Environments {
    seats: Vec<EnvironmentSeat>,
    layout: Layout,
    facts: PolicyFacts,
    options: Options,
    threads: Threads,
    arrays: Arrays,
    arguments: Arguments,
}

#[pymethods]
impl Environments {
    /// Environments of the experiment `text`, with `sets` (`KEY=VALUE`) applied. `name` is for messages.
    #[new]
    #[pyo3(signature = (name, text, sets, num_envs, threads, split, autoreset, on_forbidden, half_life_secs,
        present_value, timeline, round_actions))]
    #[allow(clippy::too_many_arguments, reason = "the constructor of a class of Python, called in one place")]
    fn new(
        py: Python<'_>,
        name: String,
        text: String,
        sets: Vec<String>,
        num_envs: usize,
        threads: usize,
        split: String,
        autoreset: String,
        on_forbidden: String,
        half_life_secs: Option<f64>,
        present_value: bool,
        timeline: bool,
        round_actions: Option<usize>,
    ) -> PyResult<Self> {
        let options = Options::read(&split, &autoreset, &on_forbidden, half_life_secs, present_value, round_actions)?;
        if num_envs == 0 || threads == 0 {
            let wrong = if num_envs == 0 { "num_envs" } else { "threads" };
            return Err(PyValueError::new_err(format!("{wrong} is 0, expected at least 1")));
        }
        let (experiment, setup) = py.detach(|| {
            let document = Document::new(&name, &text, &sets).map_err(|error| unread(&error))?;
            let experiment: Experiment = reader::of_document(&document).map_err(|error| unread(&error))?;
            let setup = experiment.setup().map_err(|error| PyValueError::new_err(format!("{name}: {error}")))?;
            Ok::<_, PyErr>((experiment, setup))
        })?;
        let facts = PolicyFacts {
            decoder: Decoder::new(setup.options().batching, setup.options().information),
            types: setup.type_names(setup.cluster().types.len()),
            gpus: setup.cluster().total_gpus(),
            sharing: setup.sharing().clone(),
            resolved: reader::resolved(&experiment).map_err(|error| unread(&error))?,
        };
        let env = experiment.cluster_env(setup).with_discount(options.discount);
        let env = if timeline { env.with_timeline() } else { env };
        let layout = env.layout();
        Ok(Self {
            // Seeds come with the first reset.
            seats: (0..num_envs).map(|_| EnvironmentSeat::new(env.clone())).collect(),
            layout,
            facts,
            options,
            threads: Threads::new(threads),
            arrays: Arrays::new(py, num_envs, layout),
            arguments: (
                name,
                text,
                sets,
                num_envs,
                threads,
                split,
                autoreset,
                on_forbidden,
                half_life_secs,
                present_value,
                timeline,
                round_actions,
            ),
        })
    }

    /// The arrays that steps write, by name.
    fn arrays<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.arrays.named(py)
    }

    /// Sizes by name: slots, slot_features, globals, verbs, services, types.
    fn layout<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let Layout { slots, slot_features, globals, verbs, services, pools, types } = self.layout;
        let sizes = PyDict::new(py);
        let numbers = [slots, slot_features, globals, verbs, services, types];
        for (name, size) in ["slots", "slot_features", "globals", "verbs", "services", "types"].into_iter().zip(numbers)
        {
            sizes.set_item(name, size)?;
        }
        sizes.set_item("pools", pools)?;
        sizes.set_item("schema", self.layout.schema_hash())?;
        Ok(sizes)
    }

    /// Names and units of the numbers of an observation.
    fn features(&self) -> Vec<(String, &'static str)> {
        let pair = |Feature { name, unit }| (name, unit);
        self.layout.features(&self.facts.types).into_iter().map(pair).collect()
    }

    /// Names of the actions.
    fn actions(&self) -> Vec<String> {
        self.layout.action_names(&self.facts.types)
    }

    /// Begins the stream of episodes of environment `index` of a master seed in the environment `at`.
    fn seed(&mut self, at: usize, master: u64, index: u64) -> PyResult<()> {
        if index >= STREAMS {
            return Err(PyValueError::new_err(format!("index is {index}, expected less than {STREAMS}")));
        }
        let first = self.options.split.first_seed(master, index);
        self.seat_mut(at)?.player.reseed(first);
        Ok(())
    }

    /// The first seed of the stream of episodes of every environment.
    fn seeds(&self) -> Vec<u64> {
        self.seats.iter().map(|seat| seat.player.seed()).collect()
    }

    /// Begins the next episode of every environment, or of those that `which` names.
    #[pyo3(signature = (which = None))]
    fn reset(&mut self, py: Python<'_>, which: Option<Vec<bool>>) -> PyResult<()> {
        let count = self.seats.len();
        let which = which.unwrap_or_else(|| vec![true; count]);
        if which.len() != count {
            return Err(PyValueError::new_err(format!("reset_mask has {} flags, expected {count}", which.len())));
        }
        for (seat, chosen) in self.seats.iter_mut().zip(which) {
            seat.action = usize::from(chosen);
        }
        self.arrays.each(py, &mut self.seats, self.threads.here()?, |seat, row| match seat.action {
            0 => Ok(()),
            _ => seat.player.begin(&ResetOptions::default(), row.observation),
        })
    }

    /// Steps every environment with its action, and returns the environments with an action that was replaced.
    fn step(&mut self, py: Python<'_>, actions: PyReadonlyArray1<'_, i64>) -> PyResult<Vec<usize>> {
        let replaced = self.choose(actions.as_slice()?)?;
        let options = self.options;
        self.arrays.each(py, &mut self.seats, self.threads.here()?, |seat, row| seat.step(&options, row))?;
        Ok(replaced)
    }

    /// Whether no episode is under way in the environment `at`.
    fn is_over(&self, at: usize) -> PyResult<bool> {
        Ok(self.seat(at)?.player.is_over())
    }

    /// Environment `at` as text.
    fn text(&self, at: usize) -> PyResult<String> {
        Ok(screen::text(self.seat(at)?.player.env()))
    }

    /// Contents of a picture of environment `at`.
    fn picture(&self, at: usize) -> PyResult<Picture> {
        Ok(pictures::picture(self.seat(at)?.player.env()))
    }

    /// The experiment in TOML with every default filled in.
    fn resolved(&self) -> &str {
        &self.facts.resolved
    }

    fn __len__(&self) -> usize {
        self.seats.len()
    }

    fn __reduce__<'py>(this: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>, Vec<Position>)> {
        let own = this.borrow();
        let position = |seat: &EnvironmentSeat| {
            let Cursor { episode, actions } = seat.player.cursor();
            (seat.player.seed(), *episode, actions.clone())
        };
        let arguments = own.arguments.clone().into_pyobject(this.py())?;
        Ok((this.get_type().into_any(), arguments, own.seats.iter().map(position).collect()))
    }

    /// Brings fresh environments to recorded positions by playing the recorded actions again.
    fn __setstate__(&mut self, py: Python<'_>, positions: Vec<Position>) -> PyResult<()> {
        let mut cursors = Vec::with_capacity(positions.len());
        for (seat, (seed, episode, actions)) in self.seats.iter_mut().zip(positions) {
            seat.player.reseed(seed);
            seat.action = cursors.len();
            cursors.push(Cursor { episode, actions });
        }
        let options = self.options;
        self.arrays.each(py, &mut self.seats, self.threads.here()?, |seat, row| {
            let ObservationMut { features, mask } = row.observation;
            let observation = ObservationMut { features, mask: &mut *mask };
            seat.player.restore(&cursors[seat.action], &ResetOptions::default(), observation)?;
            seat.close(&options, mask);
            Ok(())
        })
    }
}

impl Environments {
    /// Layout of one environment.
    pub fn shape(&self) -> &Layout {
        &self.layout
    }

    /// Facts of the experiment that concern the policies that play it.
    pub fn facts(&self) -> &PolicyFacts {
        &self.facts
    }

    /// Players of the environments, in order.
    pub fn players(&self) -> impl ExactSizeIterator<Item = &Player<ClusterEnv>> {
        self.seats.iter().map(|seat| &seat.player)
    }

    fn seat(&self, at: usize) -> PyResult<&EnvironmentSeat> {
        self.seats.get(at).ok_or_else(|| PyIndexError::new_err(format!("there is no environment {at}")))
    }

    fn seat_mut(&mut self, at: usize) -> PyResult<&mut EnvironmentSeat> {
        self.seats.get_mut(at).ok_or_else(|| PyIndexError::new_err(format!("there is no environment {at}")))
    }

    /// Checks the action of every environment before any is stepped, and returns the environments with an action that
    /// was replaced.
    fn choose(&mut self, actions: &[i64]) -> PyResult<Vec<usize>> {
        let (options, on_forbidden) = (self.options, self.options.on_forbidden);
        if actions.len() != self.seats.len() {
            let (count, given) = (self.seats.len(), actions.len());
            return Err(PyValueError::new_err(format!("{given} actions, expected {count}: one for each environment")));
        }
        let mut replaced = Vec::new();
        for (at, (seat, &action)) in self.seats.iter_mut().zip(actions).enumerate() {
            let allows = |action: usize| seat.allows(action, &options);
            let asked = usize::try_from(action).ok();
            seat.action = match (asked.filter(|&action| allows(action)), on_forbidden) {
                (Some(action), _) => action,
                (None, _) if seat.player.is_over() => {
                    return Err(PyRuntimeError::new_err(format!(
                        "environment {at}: no episode is under way, reset it"
                    )));
                }
                (None, OnForbidden::Raise) => {
                    let names = self.layout.action_names(&self.facts.types);
                    let name = asked.and_then(|action| names.get(action)).map_or("no action", String::as_str);
                    return Err(PyValueError::new_err(format!(
                        "environment {at}: action {action} ({name}) is not allowed now. Choose among \
                         infos[\"action_mask\"], or make the environment with on_forbidden=\"wait\". No environment \
                         was stepped."
                    )));
                }
                (None, OnForbidden::Wait) => {
                    replaced.push(at);
                    let wait = self.layout.wait();
                    // Some action is always allowed.
                    if allows(wait) { wait } else { (0..wait).find(|&action| allows(action)).unwrap_or(wait) }
                }
            };
        }
        Ok(replaced)
    }
}

/// Error of an experiment that cannot be read, with its advice.
fn unread(error: &goodput_configs::error::ReadError) -> PyErr {
    let help = error.help.as_ref().map_or_else(String::new, |help| format!("\nhelp: {help}"));
    PyValueError::new_err(format!("{}{help}", error.message))
}
