//! Nets of any shape: an ONNX graph that scores actions, computed by the library rten.
//!
//! A graph has one input, the flat observation as f32 `[1, obs_dim]`, and its first output is f32 `[1, actions]`: a
//! score for each action. Other outputs, such as a critic's value, are not computed. The graph is computed on one
//! thread, and rten chooses its instructions by the processor: the scores of one net may differ in their last bits
//! between processors, where those of [`Fused`](super::fused::Fused) do not.

use std::fmt;
use std::sync::Arc;

use goodput_env::gym::Layout;
use rten::{DataType, Dimension, Model, NodeId, RunOptions, ThreadPool, Value, ValueType};
use thiserror::Error;

/// A graph that cannot be a policy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OnnxError {
    /// The bytes are no graph, or the graph has an operator that is not known.
    #[error("the net cannot be read: {reason}")]
    Unreadable {
        /// Message of the reader, which names the operator.
        reason: String,
    },
    /// The graph wants more than an observation, or less.
    #[error("the net has the inputs {found:?}, expected one: the observation")]
    Inputs {
        /// Names of the inputs.
        found: Vec<String>,
    },
    /// The graph has no output.
    #[error("the net has no output, expected a score for each action")]
    NoOutput,
    /// The input is no observation of this program.
    #[error("input {name:?} of the net is {found}, expected f32 [1, {expected}]: the observation")]
    Input {
        /// Name of the input.
        name: String,
        /// Its type and shape.
        found: String,
        /// Length of an observation.
        expected: usize,
    },
    /// The output is no row of scores.
    #[error("output {name:?} of the net is {found}, expected f32 [1, {expected}]: a score for each action")]
    Output {
        /// Name of the output.
        name: String,
        /// Its type and shape.
        found: String,
        /// Number of actions.
        expected: usize,
    },
    /// An operator has failed.
    #[error("the net cannot be computed: {reason}")]
    Failed {
        /// Message of the library.
        reason: String,
    },
}

/// A graph that scores actions.
#[derive(Clone)]
pub struct OnnxNet {
    bytes: Arc<[u8]>,
    layout: Layout,
    model: Arc<Model>,
    input: NodeId,
    output: NodeId,
}

impl OnnxNet {
    /// The graph in the bytes of an ONNX file with its weights inside, for observations and actions of `layout`. The
    /// graph is computed once for an observation of zeros.
    ///
    /// # Errors
    /// [`OnnxError`]: an operator that is not known, shapes that are not those of `layout`, a graph that fails.
    pub fn new(bytes: impl Into<Arc<[u8]>>, layout: Layout) -> Result<Self, OnnxError> {
        let bytes = bytes.into();
        let unreadable = |error: rten::LoadError| OnnxError::Unreadable { reason: error.to_string() };
        let model = Model::load(bytes.to_vec()).map_err(unreadable)?;
        let &[input] = model.input_ids() else {
            return Err(OnnxError::Inputs { found: model.input_ids().iter().map(|&id| name(&model, id)).collect() });
        };
        let &output = model.output_ids().first().ok_or(OnnxError::NoOutput)?;
        let node = model.node_info(input);
        let shape = node.as_ref().and_then(|node| node.shape());
        let kind = node.as_ref().and_then(|node| node.dtype());
        let fits = |shape: &[Dimension]| matches!(shape, [one, width] if is(one, 1) && is(width, layout.obs_dim()));
        if kind.is_some_and(|kind| kind != ValueType::Tensor(DataType::Float))
            || shape.as_deref().is_some_and(|shape| !fits(shape))
        {
            let kind = kind.map_or_else(String::new, |kind| kind.to_string());
            let found = format!("{kind} {}", shape.as_deref().map(words).unwrap_or_default());
            return Err(OnnxError::Input { name: name(&model, input), found, expected: layout.obs_dim() });
        }
        let net = Self { bytes, layout, model: Arc::new(model), input, output };
        net.at_work().logits(&vec![0.0; layout.obs_dim()])?;
        Ok(net)
    }

    /// Shapes of observations and actions.
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Bytes of the ONNX file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The net with a thread of its own and room for its scores.
    pub fn at_work(&self) -> OnnxScorer {
        // Each scorer has a thread, so that runs in parallel do not wait for one another.
        let pool = Arc::new(ThreadPool::with_num_threads(1));
        OnnxScorer { net: self.clone(), pool, logits: vec![0.0; self.layout.actions()] }
    }
}

/// Two nets are equal where their files are.
impl PartialEq for OnnxNet {
    fn eq(&self, other: &Self) -> bool {
        (&self.bytes, &self.layout) == (&other.bytes, &other.layout)
    }
}

impl fmt::Debug for OnnxNet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnnxNet").field("layout", &self.layout).field("model", &self.model).finish_non_exhaustive()
    }
}

/// A graph at work.
#[derive(Clone, Debug)]
pub struct OnnxScorer {
    net: OnnxNet,
    pool: Arc<ThreadPool>,
    logits: Vec<f32>,
}

impl OnnxScorer {
    /// Scores of all actions as [`Self::logits`] has them; no numbers where the graph fails.
    pub fn scores(&mut self, observation: &[f32]) -> &[f32] {
        if self.logits(observation).is_err() {
            self.logits.fill(f32::NAN);
        }
        &self.logits
    }

    /// Scores of all actions for one flat observation `[obs_dim]`, allowed or not.
    ///
    /// # Errors
    /// [`OnnxError::Failed`], and [`OnnxError::Output`] where the output has another type or shape.
    pub fn logits(&mut self, observation: &[f32]) -> Result<&[f32], OnnxError> {
        let OnnxNet { model, layout, input, output, .. } = &self.net;
        let failed = |reason: String| OnnxError::Failed { reason };
        let row = Value::from_shape(&[1, observation.len()], observation.to_vec());
        let row = row.map_err(|error| failed(error.to_string()))?;
        let options = RunOptions::default().with_thread_pool(Some(self.pool.clone()));
        let [scores] = model
            .run_n(vec![(*input, row.into())], [*output], Some(options))
            .map_err(|error| failed(error.to_string()))?;
        let (kind, expected) = (scores.dtype(), layout.actions());
        let found = match scores.into_shape_vec::<f32, 2>() {
            Ok(([1, width], row)) if width == expected => {
                self.logits.copy_from_slice(&row);
                return Ok(&self.logits);
            }
            Ok((shape, _)) => format!("{kind} {shape:?}"),
            Err(error) => error.to_string(),
        };
        Err(OnnxError::Output { name: name(model, *output), found, expected })
    }
}

fn name(model: &Model, id: NodeId) -> String {
    model.node_info(id).and_then(|node| node.name().map(str::to_owned)).unwrap_or_default()
}

/// Whether a dimension is `size`, or may be.
fn is(dimension: &Dimension, size: usize) -> bool {
    match dimension {
        Dimension::Fixed(fixed) => *fixed == size,
        Dimension::Symbolic(_) => true,
    }
}

fn words(shape: &[Dimension]) -> String {
    let word = |dimension: &Dimension| match dimension {
        Dimension::Fixed(size) => size.to_string(),
        Dimension::Symbolic(name) => name.clone(),
    };
    format!("[{}]", shape.iter().map(word).collect::<Vec<_>>().join(", "))
}
