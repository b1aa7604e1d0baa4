//! The queue of pods to schedule: a binary heap, as in kube-scheduler, in the order of the one
//! [`QueueSort`] plugin.

use super::{Pod, QueueSort};

/// A binary min-heap of pods.
#[derive(Debug, Default)]
pub struct Queue {
    pods: Vec<Pod>,
}

impl Queue {
    /// Adds a pod.
    pub fn push(&mut self, sort: &dyn QueueSort, pod: Pod) {
        self.pods.push(pod);
        let mut at = self.pods.len() - 1;
        while at > 0 && self.before(sort, at, (at - 1) / 2) {
            self.pods.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
    }

    /// Takes the first pod.
    pub fn pop(&mut self, sort: &dyn QueueSort) -> Option<Pod> {
        if self.pods.is_empty() {
            return None;
        }
        // The last pod takes the root's place and sinks to where it belongs.
        let first = self.pods.swap_remove(0);
        let mut at = 0;
        loop {
            let children = [2 * at + 1, 2 * at + 2].into_iter().filter(|&child| child < self.pods.len());
            let least = children.reduce(|one, other| if self.before(sort, other, one) { other } else { one });
            match least {
                Some(child) if self.before(sort, child, at) => {
                    self.pods.swap(child, at);
                    at = child;
                }
                _ => return Some(first),
            }
        }
    }

    /// Number of pods.
    pub fn len(&self) -> usize {
        self.pods.len()
    }

    /// Whether no pod waits.
    pub fn is_empty(&self) -> bool {
        self.pods.is_empty()
    }

    fn before(&self, sort: &dyn QueueSort, one: usize, other: usize) -> bool {
        sort.compare(&self.pods[one], &self.pods[other]).is_lt()
    }
}
