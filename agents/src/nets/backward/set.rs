//! The set encoder. Only occupied slots are rows of its matrices.

use std::ops::Range;

use ndarray::{Array2, ArrayView2, Zip, s};

use super::part::{Part, relu, through};
use super::{NetOutput, Pass, add};
use crate::nets::fused::pool;
use crate::nets::shard::Shard;
use crate::nets::weights::{Weights, set_layer as layer};

/// Activations of each layer for the occupied slots (`[jobs, ...]`) or of the rows (`[rows, ...]`).
pub(super) struct SetPass<'a> {
    weights: &'a Weights,
    shard: &'a Shard,
    /// Occupied slots of the shard, row by row: which rows of what follows belong to a row, and
    /// which slot each is.
    jobs: Vec<Range<usize>>,
    slots: Vec<usize>,
    features: Array2<f32>,
    first: Array2<f32>,
    embedded: Array2<f32>,
    pooled: Array2<f32>,
    widened: Array2<f32>,
    context: Array2<f32>,
    informed: Array2<f32>,
    valued: [Array2<f32>; 2],
}

impl<'a> SetPass<'a> {
    pub fn forward(weights: &'a Weights, shard: &'a Shard) -> (NetOutput, Box<dyn Pass + 'a>) {
        let layout = weights.layout();
        let apply = |index: usize, x: &Array2<f32>| Part::of(weights, index).forward(&[x.view()]);
        let (jobs, slots, features) = occupied(shard, layout.slot_features);
        let first = relu(apply(layer::SLOT1, &features));
        let embedded = relu(apply(layer::SLOT2, &first));
        let width = embedded.ncols();

        let mut pooled = Array2::zeros((shard.rows, 2 * width + layout.globals));
        let flat = embedded.as_slice().expect("a product is contiguous");
        for ((row, jobs), mut pooled) in jobs.iter().enumerate().zip(pooled.rows_mut()) {
            let globals = &shard.globals[row * layout.globals..(row + 1) * layout.globals];
            let pooled = pooled.as_slice_mut().expect("a row is contiguous");
            pool(&flat[jobs.start * width..jobs.end * width], width, jobs.len(), width, globals, pooled);
        }
        let widened = relu(apply(layer::POOL1, &pooled));
        let context = apply(layer::POOL2, &widened);
        let mut informed = apply(layer::PROJECT, &embedded);
        for (jobs, context) in jobs.iter().zip(context.rows()) {
            for job in jobs.clone() {
                let mut informed = informed.row_mut(job);
                informed += &context;
            }
        }
        let informed = relu(informed);
        let verbs = apply(layer::VERBS, &informed);
        let context = relu(context);
        let others = apply(layer::WAIT, &context);
        let mut scores = vec![0.0; shard.penalty.len()];
        for (row, (jobs, kept)) in jobs.iter().zip(scores.chunks_exact_mut(shard.actions())).enumerate() {
            for job in jobs.clone() {
                let at = slots[job] * layout.verbs;
                kept[at..at + layout.verbs].iter_mut().zip(verbs.row(job)).for_each(|(score, &verb)| *score = verb);
            }
            let of_none = &mut kept[shard.slots * layout.verbs..];
            of_none.iter_mut().zip(others.row(row)).for_each(|(score, &other)| *score = other);
        }

        let one = relu(apply(layer::VALUE1, &pooled));
        let two = relu(apply(layer::VALUE2, &one));
        let values = apply(layer::VALUE3, &two).into_raw_vec_and_offset().0;
        let valued = [one, two];
        let pass =
            Self { weights, shard, jobs, slots, features, first, embedded, pooled, widened, context, informed, valued };
        (NetOutput { scores, values }, Box::new(pass))
    }
}

impl Pass for SetPass<'_> {
    fn backward(self: Box<Self>, slopes: &NetOutput, total: &mut [f32]) {
        let layout = self.weights.layout();
        // A vector of its own: the product over more rows than one block of the library holds would round differently
        // where it is added to what is there.
        let mut gradient = vec![0.0; self.weights.data().len()];
        // The slopes of what went into a layer; those of its parameters are written down.
        let mut back = |index: usize, x: &Array2<f32>, slopes: &Array2<f32>| {
            let part = Part::of(self.weights, index);
            part.collect(&[x.view()], slopes, &mut gradient);
            part.pull(slopes)
        };

        let mut of_verbs = Array2::zeros((self.slots.len(), layout.verbs));
        let mut of_others = Array2::zeros((self.jobs.len(), layout.others()));
        for (row, (jobs, kept)) in self.jobs.iter().zip(slopes.scores.chunks_exact(self.shard.actions())).enumerate() {
            for job in jobs.clone() {
                let from = &kept[self.slots[job] * layout.verbs..];
                of_verbs.row_mut(job).iter_mut().zip(from).for_each(|(slope, &from)| *slope = from);
            }
            let of_none = &kept[self.shard.slots * layout.verbs..];
            of_others.row_mut(row).iter_mut().zip(of_none).for_each(|(slope, &from)| *slope = from);
        }
        let of_informed = through(&self.informed, back(layer::VERBS, &self.informed, &of_verbs));
        let mut of_context = through(&self.context, back(layer::WAIT, &self.context, &of_others));
        // Jobs took in the context before its ReLU, so their slopes do not pass through it.
        for (jobs, mut of_context) in self.jobs.iter().zip(of_context.rows_mut()) {
            for job in jobs.clone() {
                of_context += &of_informed.row(job);
            }
        }
        let mut of_embedded = back(layer::PROJECT, &self.embedded, &of_informed);
        let of_widened = through(&self.widened, back(layer::POOL2, &self.widened, &of_context));
        let mut of_pooled = back(layer::POOL1, &self.pooled, &of_widened);

        let of_values = ArrayView2::from_shape((self.jobs.len(), 1), &slopes.values).expect("one for each row");
        let [one, two] = &self.valued;
        let of_two = through(two, back(layer::VALUE3, two, &of_values.to_owned()));
        let of_one = through(one, back(layer::VALUE2, one, &of_two));
        of_pooled += &back(layer::VALUE1, &self.pooled, &of_one);

        let width = self.embedded.ncols();
        for ((jobs, of_pooled), pooled) in self.jobs.iter().zip(of_pooled.rows()).zip(self.pooled.rows()) {
            let of_mean = of_pooled.slice(s![..width]).mapv(|slope| slope / jobs.len().max(1) as f32);
            // The maximum is that of the first job which has it.
            let (largest, mut left) =
                (pooled.slice(s![width..2 * width]), of_pooled.slice(s![width..2 * width]).to_owned());
            for job in jobs.clone() {
                let mut of_job = of_embedded.row_mut(job);
                of_job += &of_mean;
                Zip::from(&mut of_job).and(&mut left).and(largest).and(self.embedded.row(job)).for_each(
                    |slope, left, &largest, &own| {
                        let part = if own == largest { *left } else { 0.0 };
                        *slope += part;
                        *left -= part;
                    },
                );
            }
        }
        let of_second = through(&self.embedded, of_embedded);
        let of_first = through(&self.first, back(layer::SLOT2, &self.first, &of_second));
        Part::of(self.weights, layer::SLOT1).collect(&[self.features.view()], &of_first, &mut gradient);
        add(total, &gradient);
    }
}

/// Occupied slots of a shard: their range in each row, which slot each is, and their features.
fn occupied(shard: &Shard, slot_features: usize) -> (Vec<Range<usize>>, Vec<usize>, Array2<f32>) {
    let (mut jobs, mut slots, mut features) = (Vec::with_capacity(shard.rows), Vec::new(), Vec::new());
    for row in shard.features.chunks_exact(shard.slots * slot_features) {
        let from = slots.len();
        for (slot, of_slot) in row.chunks_exact(slot_features).enumerate().filter(|(_, of_slot)| of_slot[0] != 0.0) {
            slots.push(slot);
            features.extend_from_slice(of_slot);
        }
        jobs.push(from..slots.len());
    }
    let features = Array2::from_shape_vec((slots.len(), slot_features), features).expect("one row for each");
    (jobs, slots, features)
}
