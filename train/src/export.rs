//! Export of a trained model as a policy bundle.

use goodput_agents::bundle::{Model as Net, PolicyBundle, Provenance};
use goodput_agents::policies::rounds::Decoder;
use goodput_configs::experiment::Experiment;
use goodput_configs::scenario::Setup;

/// Options under which policies of this setup are run: the best action decides.
pub fn decoder(setup: &Setup) -> Decoder {
    let options = setup.options();
    Decoder::new(options.batching, options.information)
}

/// A bundle of `model` as trained by `experiment`, which `setup` prepares.
pub fn bundle(model: Net, experiment: &Experiment, setup: &Setup, provenance: Provenance) -> PolicyBundle {
    let types = setup.type_names(setup.cluster().types.len());
    PolicyBundle::trained(model, decoder(setup), &types, experiment.trained_accelerators(), provenance)
}
