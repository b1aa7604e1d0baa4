//! Shape of a job on its nodes: equal pods, since a Job has one template, and a node for each of
//! them.

use crate::engine::OnNode;

/// Equal pods of a job, and the node of each by its completion index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodShape {
    /// Accelerators of each pod.
    pub gpus: u32,
    /// Node of each pod, by index.
    pub nodes: Vec<String>,
}

impl PodShape {
    /// Largest equal pods that a placement can be cut into; those of `fixed` accelerators where the
    /// program needs so many in each pod. `None` where the placement cannot be cut so.
    pub fn of(placement: &[OnNode], fixed: Option<u32>) -> Option<Self> {
        let largest = placement.iter().fold(0, |sizes, on| gcd(sizes, on.gpus));
        let gpus = fixed.unwrap_or(largest);
        if gpus == 0 || largest % gpus != 0 {
            return None;
        }
        let of_node = |on: &OnNode| std::iter::repeat_n(on.node.clone(), (on.gpus / gpus) as usize);
        Some(Self { gpus, nodes: placement.iter().flat_map(of_node).collect() })
    }

    /// Accelerators of all pods.
    pub fn world(&self) -> u32 {
        self.gpus * self.nodes.len() as u32
    }

    /// The one node that all pods run on; `None` where there are several.
    pub fn only_node(&self) -> Option<&str> {
        let first = self.nodes.first()?;
        self.nodes.iter().all(|node| node == first).then_some(first.as_str())
    }

    /// The shape `wanted`, reached from this one while pods that stay go on: a Job grows and shrinks
    /// at its last indices only. `None` where pods would have to move.
    pub fn resized_in_place(&self, wanted: &Self) -> Option<Self> {
        let mut left = wanted.nodes.clone();
        let stay = self.nodes.iter().take_while(|node| {
            let at = left.iter().position(|other| other == *node);
            at.map(|at| left.swap_remove(at)).is_some()
        });
        let mut nodes: Vec<String> = stay.cloned().collect();
        let shrinks = left.is_empty();
        let grows = nodes.len() == self.nodes.len();
        left.sort_unstable();
        nodes.extend(left);
        (wanted.gpus == self.gpus && (shrinks || grows)).then_some(Self { gpus: self.gpus, nodes })
    }

    /// Placement of the shape, in the order of its pods.
    pub fn placement(&self) -> Vec<OnNode> {
        let mut placement: Vec<OnNode> = Vec::new();
        for node in &self.nodes {
            match placement.last_mut().filter(|on| on.node == *node) {
                Some(on) => on.gpus += self.gpus,
                None => placement.push(OnNode { node: node.clone(), gpus: self.gpus, ..OnNode::default() }),
            }
        }
        placement
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use proptest::prelude::*;

    use super::*;

    fn on(node: &str, gpus: u32) -> OnNode {
        OnNode { node: node.into(), gpus, ..OnNode::default() }
    }

    #[test]
    fn a_placement_is_cut_into_the_largest_equal_pods() {
        let even = PodShape::of(&[on("a", 8), on("b", 8)], None).unwrap();
        assert_eq!((even.gpus, even.nodes.len(), even.only_node()), (8, 2, None));
        let uneven = PodShape::of(&[on("a", 4), on("b", 6)], None).unwrap();
        assert_eq!((uneven.gpus, uneven.nodes), (2, ["a", "a", "b", "b", "b"].map(String::from).to_vec()));
        assert_eq!(PodShape::of(&[on("a", 3)], Some(2)), None, "no whole number of pods");
        assert_eq!(PodShape::of(&[on("a", 4)], Some(2)).unwrap().only_node(), Some("a"));
        assert_eq!(PodShape::of(&[], None), None);
    }

    #[test]
    fn pods_stay_where_they_are_or_the_job_starts_anew() {
        let shape = |nodes: &[&str]| PodShape { gpus: 1, nodes: nodes.iter().map(|&node| node.into()).collect() };
        let now = shape(&["a", "b"]);
        assert_eq!(
            now.resized_in_place(&shape(&["a", "a", "b"])),
            Some(shape(&["a", "b", "a"])),
            "it grows at its end"
        );
        assert_eq!(now.resized_in_place(&shape(&["a"])), Some(shape(&["a"])));
        assert_eq!(now.resized_in_place(&shape(&["b"])), None, "index 0 would have to move");
        assert_eq!(now.resized_in_place(&PodShape { gpus: 2, nodes: vec!["a".into()] }), None);
    }

    proptest! {
        #[test]
        fn every_placement_has_a_shape_that_covers_it(gpus in prop::collection::vec(1u32..=16, 1..6)) {
            let placement: Vec<OnNode> = gpus.iter().enumerate().map(|(at, &gpus)| on(&format!("n{at}"), gpus)).collect();
            let shape = PodShape::of(&placement, None).unwrap();
            prop_assert_eq!(shape.placement(), placement);
            prop_assert_eq!(shape.world(), gpus.iter().sum::<u32>());
        }
    }
}
