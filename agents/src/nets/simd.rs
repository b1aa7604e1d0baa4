//! The widest vectors of the processor.

use pulp::NullaryFnOnce;

/// Runs `work` compiled for the widest vectors that this processor has.
///
/// Products and sums stay apart: no multiplication is fused with an addition, so the bits of a result do not depend on
/// the processor. Loops are compiled anew only where they are inlined, as those of a short closure are.
#[inline(always)]
pub(crate) fn widest<R>(work: impl NullaryFnOnce<Output = R>) -> R {
    pulp::Arch::new().dispatch(work)
}
