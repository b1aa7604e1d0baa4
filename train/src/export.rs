//! Export of a trained model as a policy bundle.

use goodput_agents::bundle::{Card, Model as Net, PolicyBundle, Provenance};
use goodput_agents::policies::rounds::Decoder;
use goodput_configs::scenario::Setup;

/// Options under which policies of this setup are run: the best action decides.
pub fn decoder(setup: &Setup) -> Decoder {
    let options = setup.options();
    Decoder::new(options.batching, options.information)
}

/// Names of the accelerator types that a policy tells apart.
fn types_told_apart(model: &Net, setup: &Setup) -> Vec<String> {
    setup.type_names(match model {
        Net::Net(weights) => weights.layout().types,
        Net::Linear(linear) => linear.layout().types,
        Net::Utility(_) => 0,
    })
}

/// A bundle of `model` as trained by `experiment`.
pub fn bundle(model: Net, setup: &Setup, provenance: Provenance) -> PolicyBundle {
    let options = setup.options();
    let decoder = decoder(setup);
    let types = types_told_apart(&model, setup);
    let card = Card {
        schema_hash: match &model {
            Net::Utility(utility) => utility.theta.schema_hash(),
            Net::Net(weights) => weights.layout().schema_hash(),
            Net::Linear(linear) => linear.layout().schema_hash(),
        },
        information: options.information.to_string(),
        decoder: serde_json::to_value(decoder).expect("a decoder is plain data"),
        provenance,
        types,
        bounds: [("cluster_gpus".to_string(), [f64::from(setup.cluster().total_gpus()); 2])].into(),
    };
    PolicyBundle { model, normaliser: None, card }
}
