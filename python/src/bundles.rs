//! Bundles of policies: nets that were trained in Python written as bundles, and bundles that decide in Python.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use goodput_agents::bundle::{Model, PolicyBundle, Provenance};
use goodput_agents::nets::onnx::OnnxNet;
use goodput_agents::nets::weights::{MlpConfig, NetConfig, SetConfig, Weights};
use goodput_agents::policies::deployed::Deployed;
use goodput_agents::zoo;
use numpy::{PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::environments::Environments;

/// Matrix `[inputs, outputs]` and bias `[outputs]` of a layer.
type LayerArrays<'py> = (PyReadonlyArray2<'py, f32>, PyReadonlyArray1<'py, f32>);

/// Mask of allowed actions.
#[derive(FromPyObject)]
enum Mask<'py> {
    Flags(PyReadonlyArray1<'py, bool>),
    Numbers(PyReadonlyArray1<'py, i8>),
}

fn refused(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Writes a net as a bundle, and returns its SHA-256. `kind` is `mlp` with the widths of its hidden layers in `sizes`,
/// or `set` with its width and its number of heads.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "called in one place, by goodput_gym.export")]
pub fn export(
    envs: &Environments,
    path: PathBuf,
    kind: &str,
    sizes: Vec<usize>,
    layers: BTreeMap<String, LayerArrays<'_>>,
    argv: Vec<String>,
    seed: u64,
    steps: u64,
    config_sha256: String,
) -> PyResult<String> {
    let widths = sizes.iter().map(|&size| NonZeroUsize::new(size).ok_or_else(|| refused("a layer has no outputs")));
    let config = match (kind, sizes.as_slice()) {
        ("set", &[width, heads]) => {
            let width = NonZeroUsize::new(width).ok_or_else(|| refused("the encoder has no width"))?;
            NetConfig::Set(SetConfig { width, heads })
        }
        _ => NetConfig::Mlp(MlpConfig { hidden: widths.collect::<PyResult<_>>()? }),
    };
    let mut data = Vec::with_capacity(config.parameters(envs.shape()));
    for layer in config.layers(envs.shape()) {
        let (matrix, bias) = layers
            .get(&layer.name)
            .ok_or_else(|| refused(format!("the net has no layer {:?}, which a net of kind {kind} has", layer.name)))?;
        if matrix.shape() != [layer.inputs, layer.outputs] || bias.shape() != [layer.outputs] {
            return Err(refused(format!(
                "layer {:?} has {:?} inputs and outputs, and this environment needs {:?}",
                layer.name,
                matrix.shape(),
                [layer.inputs, layer.outputs],
            )));
        }
        data.extend_from_slice(matrix.as_slice()?);
        data.extend_from_slice(bias.as_slice()?);
    }
    let wanted = config.layers(envs.shape());
    let mut unused: Vec<&str> =
        layers.keys().map(String::as_str).filter(|name| wanted.iter().all(|layer| layer.name != *name)).collect();
    unused.sort_unstable();
    if !unused.is_empty() {
        return Err(refused(format!("a net of kind {kind} does not have the layers {}", unused.join(", "))));
    }
    let weights = Weights::from_data(&config, *envs.shape(), data).map_err(refused)?;
    save(envs, &path, Model::Net(weights), Provenance { argv, seed, steps, config_sha256 })
}

/// Writes an ONNX graph as a bundle, and returns its SHA-256.
#[pyfunction]
pub fn export_graph(
    envs: &Environments,
    path: PathBuf,
    graph: &[u8],
    argv: Vec<String>,
    seed: u64,
    steps: u64,
    config_sha256: String,
) -> PyResult<String> {
    let net = OnnxNet::new(graph, *envs.shape()).map_err(refused)?;
    save(envs, &path, Model::Onnx(net), Provenance { argv, seed, steps, config_sha256 })
}

fn save(envs: &Environments, path: &Path, model: Model, provenance: Provenance) -> PyResult<String> {
    let facts = envs.facts();
    let bundle = PolicyBundle::trained(model, facts.decoder, &facts.types, [facts.gpus; 2], provenance);
    bundle.save(path).map_err(refused)?;
    Ok(bundle.sha256())
}

/// Net or linear policy of a bundle that scores single observations.
#[pyclass(module = "goodput_gym._core", name = "Bundle")]
pub struct DeployedBundle {
    deployed: Deployed,
    obs_dim: usize,
    actions: usize,
    kind: &'static str,
}

#[pymethods]
impl DeployedBundle {
    /// Bundle in a file, or one that ships, by a name such as `zoo:linear`.
    #[new]
    fn new(path: PathBuf) -> PyResult<Self> {
        let bundle = match path.to_str().and_then(|path| path.strip_prefix(zoo::PREFIX)) {
            Some(name) => zoo::load(name).map_err(refused)?,
            None => PolicyBundle::load(&path).map_err(refused)?,
        };
        if !bundle.plays_rounds() {
            return Err(refused(format!(
                "{} is a bundle of kind {}, which looks at the cluster itself and not at observations",
                path.display(),
                bundle.kind()
            )));
        }
        let layout = bundle.layout();
        Ok(Self {
            deployed: bundle.deploy(),
            obs_dim: layout.obs_dim(),
            actions: layout.actions(),
            kind: bundle.kind(),
        })
    }

    /// Kind of the policy: set, mlp, onnx or linear.
    #[getter]
    fn kind(&self) -> &'static str {
        self.kind
    }

    /// The allowed action of the greatest score, for a flat observation and its mask, bool or int8.
    fn act(&mut self, observation: PyReadonlyArray1<'_, f32>, mask: Mask<'_>) -> PyResult<usize> {
        let mask: Vec<u8> = match mask {
            Mask::Flags(flags) => flags.as_slice()?.iter().map(|&allowed| u8::from(allowed)).collect(),
            Mask::Numbers(numbers) => numbers.as_slice()?.iter().map(|&number| u8::from(number != 0)).collect(),
        };
        let observation = observation.as_slice()?;
        if (observation.len(), mask.len()) != (self.obs_dim, self.actions) {
            return Err(refused(format!(
                "observation and mask have {} and {} numbers, expected {} and {}",
                observation.len(),
                mask.len(),
                self.obs_dim,
                self.actions
            )));
        }
        Ok(self.deployed.decide(observation, &mask))
    }
}
