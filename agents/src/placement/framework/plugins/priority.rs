//! The default queue of Kubernetes (`priority_sort.go`): the higher priority first, then the
//! earlier pod. A tenant that raises its priority or sends more pods earlier has all of a full
//! cluster.

use std::cmp::Ordering;

use crate::placement::framework::{Pod, QueueSort};

/// The plugin. Pods of one job stay together.
#[derive(Clone, Copy, Debug, Default)]
pub struct PrioritySort;

impl QueueSort for PrioritySort {
    fn compare(&self, one: &Pod, other: &Pod) -> Ordering {
        let key = |pod: &Pod| (std::cmp::Reverse(pod.priority), pod.created, pod.id);
        key(one).cmp(&key(other))
    }
}
