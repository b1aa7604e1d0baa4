//! Decisions of a learned policy allocate no memory, by a count of allocations.
#![allow(unsafe_code, reason = "a counting allocator cannot be written without")]
#![allow(clippy::unwrap_used, reason = "a test")]

use std::alloc::{GlobalAlloc, Layout as Memory, System};
use std::cell::Cell;
use std::num::NonZeroUsize;

use goodput_agents::bundle::{Card, Model, PolicyBundle};
use goodput_agents::nets::fused::Fused;
use goodput_agents::nets::normaliser::Normaliser;
use goodput_agents::nets::weights::{MlpConfig, NetConfig, SetConfig, Weights};
use goodput_agents::policies::linear::Linear;
use goodput_env::gym::Layout;

struct Counting;

thread_local! {
    /// Allocations of this thread; the program that runs the test allocates on threads of its own.
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

fn allocations() -> usize {
    ALLOCATIONS.get()
}

// SAFETY: hands every request to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, memory: Memory) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        unsafe { System.alloc(memory) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, memory: Memory) {
        unsafe { System.dealloc(pointer, memory) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const LAYOUT: Layout =
    Layout { slots: 16, slot_features: 5, globals: 3, verbs: 3, services: 0, pools: false, types: 0 };

#[test]
fn deciding_allocates_nothing() {
    let mut observation = vec![0.25; LAYOUT.obs_dim()];
    observation[..5 * LAYOUT.slot_features].fill(0.0);
    let mask = vec![1; LAYOUT.actions()];
    let width = NonZeroUsize::new(20).unwrap();
    let mut models = vec![Model::Linear(Linear::new(LAYOUT, vec![0.1; Linear::parameters(&LAYOUT)]).unwrap())];
    let attention = SetConfig { width, heads: 2 };
    for net in [
        NetConfig::Set(SetConfig::new(width)),
        NetConfig::Set(attention),
        NetConfig::Mlp(MlpConfig { hidden: vec![width; 2] }),
    ] {
        let weights = Weights::new(&net, LAYOUT, 1);
        let mut fused = Fused::new(&weights);
        let mut scratch = fused.scratch();
        let before = allocations();
        for _ in 0..100 {
            fused.load(&weights);
            fused.sample(&observation, &mask, 0.3, &mut scratch);
            fused.value(&observation, &mut scratch);
        }
        assert_eq!(allocations(), before, "{net:?}");
        models.push(Model::Net(weights));
    }
    for model in models {
        let normaliser = Normaliser::new(LAYOUT, vec![0.5; 8], vec![2.0; 8], 5.0);
        let mut policy = PolicyBundle { model, normaliser, card: Card::default() }.deploy();
        let before = allocations();
        for _ in 0..100 {
            policy.decide(&observation, &mask);
        }
        assert_eq!(allocations(), before);
    }
}
