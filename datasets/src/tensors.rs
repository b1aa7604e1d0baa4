//! Sizes of the parameter tensors of the models that the applications of the Pollux artifact train.
//!
//! No file of the artifact states them. They follow from the layer shapes of the published models, in the form
//! in which the artifact trains them (petuum/adaptdl, branch osdi21-artifact, `benchmark/models`). A test works
//! each of them out.

use goodput_env::model::TensorSizes;

/// Application, largest tensor and sum of all tensors in 32-bit floats.
const FLOATS: [(&str, u32, u32); 6] = [
    // BERT-base, uncased, with its pooler (Devlin et al., NAACL 2019): the word embeddings are largest.
    ("bert", 23_440_896, 109_482_240),
    // ResNet-18 for images of 32 x 32 (He et al., CVPR 2016): a convolution of the last stage.
    ("cifar10", 2_359_296, 11_173_962),
    // DeepSpeech 2 with five bidirectional layers of 800 gated recurrent units (Amodei et al., ICML 2016):
    // the input weights of the first layer.
    ("deepspeech2", 3_148_800, 41_187_968),
    // ResNet-50 (He et al., CVPR 2016): a convolution of the last stage.
    ("imagenet", 2_359_296, 25_557_032),
    // NeuMF of 32 factors and three layers on MovieLens-1M (He et al., WWW 2017): the embedding of users.
    ("ncf", 773_120, 1_602_657),
    // YOLOv3 over Darknet-53 with the 20 classes of PASCAL VOC (Redmon and Farhadi, 2018): the last stage.
    ("yolov3", 4_718_592, 61_626_049),
];

/// Tensor sizes of the model that an application of the Pollux artifact trains; `None` for other applications.
pub fn tensor_sizes(application: &str) -> Option<TensorSizes> {
    let (_, largest, total) = FLOATS.into_iter().find(|(name, ..)| *name == application)?;
    // Hundredths of a MiB are more than any use of them needs, and keep the catalog readable.
    let mib = |floats: u32| (f64::from(floats) * 4.0 / 1_048_576.0 * 100.0).round() / 100.0;
    Some(TensorSizes { largest_mib: mib(largest), total_mib: mib(total) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Weights and biases, or scale and shift, of layers.
    #[derive(Default)]
    struct Shapes(Vec<u32>);

    impl Shapes {
        fn dense(&mut self, input: u32, output: u32) {
            self.0.extend([input * output, output]);
        }

        fn norm(&mut self, width: u32) {
            self.0.extend([width, width]);
        }

        /// A convolution without bias, and its normalisation.
        fn conv(&mut self, side: u32, input: u32, output: u32) {
            self.0.push(side * side * input * output);
            self.norm(output);
        }

        /// Recurrent units of three gates, in both directions.
        fn gated(&mut self, input: u32, hidden: u32) {
            let gates = 3 * hidden;
            (0..2).for_each(|_| self.0.extend([gates * input, gates * hidden, gates, gates]));
        }

        fn sizes(&self) -> (u32, u32) {
            (self.0.iter().copied().max().unwrap_or(0), self.0.iter().sum())
        }
    }

    fn bert() -> Shapes {
        let mut shapes = Shapes(vec![30_522 * 768, 512 * 768, 2 * 768]);
        shapes.norm(768);
        for _ in 0..12 {
            (0..4).for_each(|_| shapes.dense(768, 768));
            shapes.dense(768, 3072);
            shapes.dense(3072, 768);
            (0..2).for_each(|_| shapes.norm(768));
        }
        shapes.dense(768, 768);
        shapes
    }

    fn cifar10() -> Shapes {
        let mut shapes = Shapes::default();
        shapes.conv(3, 3, 64);
        let mut input = 64;
        for width in [64, 128, 256, 512] {
            for _ in 0..2 {
                shapes.conv(3, input, width);
                shapes.conv(3, width, width);
                if input != width {
                    shapes.conv(1, input, width);
                }
                input = width;
            }
        }
        shapes.dense(512, 10);
        shapes
    }

    fn deepspeech2() -> Shapes {
        let mut shapes = Shapes::default();
        for (weights, width) in [(41 * 11 * 32, 32), (21 * 11 * 32 * 32, 32)] {
            shapes.0.extend([weights, width]);
            shapes.norm(width);
        }
        shapes.gated(32 * 41, 800);
        for _ in 1..5 {
            shapes.norm(800);
            shapes.gated(800, 800);
        }
        shapes.norm(800);
        // Letters, a space, an apostrophe and the blank.
        shapes.0.push(800 * 29);
        shapes
    }

    fn imagenet() -> Shapes {
        let mut shapes = Shapes::default();
        shapes.conv(7, 3, 64);
        let mut input = 64;
        for (width, blocks) in [(64, 3), (128, 4), (256, 6), (512, 3)] {
            for block in 0..blocks {
                shapes.conv(1, input, width);
                shapes.conv(3, width, width);
                shapes.conv(1, width, 4 * width);
                if block == 0 {
                    shapes.conv(1, input, 4 * width);
                }
                input = 4 * width;
            }
        }
        shapes.dense(2048, 1000);
        shapes
    }

    fn ncf() -> Shapes {
        let (users, items) = (6040, 3706);
        let mut shapes = Shapes(vec![32 * users, 32 * items, 128 * users, 128 * items]);
        [(256, 128), (128, 64), (64, 32)].into_iter().for_each(|(input, output)| shapes.dense(input, output));
        shapes.dense(64, 1);
        shapes
    }

    fn yolov3() -> Shapes {
        let mut shapes = Shapes::default();
        shapes.conv(3, 3, 32);
        for (width, blocks) in [(32, 1), (64, 2), (128, 8), (256, 8), (512, 4)] {
            shapes.conv(3, width, 2 * width);
            for _ in 0..blocks {
                shapes.conv(1, 2 * width, width);
                shapes.conv(3, width, 2 * width);
            }
        }
        for (input, width) in [(1024, 512), (768, 256), (384, 128)] {
            let mut from = input;
            for _ in 0..2 {
                shapes.conv(1, from, width);
                shapes.conv(3, width, 2 * width);
                from = 2 * width;
            }
            shapes.conv(1, from, width);
            shapes.conv(3, width, 2 * width);
            // Three boxes, each with its place, its confidence and the classes.
            shapes.dense(2 * width, 3 * (5 + 20));
            if width > 128 {
                shapes.conv(1, width, width / 2);
            }
        }
        shapes
    }

    #[test]
    fn sizes_follow_from_the_layer_shapes() {
        let worked_out = [
            ("bert", bert()),
            ("cifar10", cifar10()),
            ("deepspeech2", deepspeech2()),
            ("imagenet", imagenet()),
            ("ncf", ncf()),
            ("yolov3", yolov3()),
        ];
        for ((listed, largest, total), (name, shapes)) in FLOATS.into_iter().zip(worked_out) {
            assert_eq!((listed, (largest, total)), (name, shapes.sizes()));
        }
    }
}
