//! Running operations along an axis: running sums, differences, shifts, filled gaps.
//!
//! The result has the lists of the input. Along the innermost axis, an operation runs over the
//! leaves of each list; along an outer axis (or axis 0), over the leaves at the same index of
//! successive elements: the running sums of `[[1, 2], [3], [5, 6]]` along the outer axis are
//! `[[1, 2], [4], [9, 8]]`. An element that is too short to have the index is skipped.

mod accumulations;
mod along_axis;
mod differences;
mod gaps;
mod shifts;

pub use accumulations::{RunningOp, cumprod, cumsum, running};
pub use differences::diff;
#[doc(hidden)]
pub use differences::find_diff_type;
pub use gaps::{backward_fill, forward_fill};
pub use shifts::shift;
