//! Kernels compared with slow references on nested vectors, for the arrays of `common/torture.rs`,
//! whose layouts are easily misread.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]
#![allow(unreachable_pub)]

mod common;

#[path = "kernels/between.rs"]
mod between;
#[path = "kernels/broadcast.rs"]
mod broadcast;
#[path = "kernels/concat.rs"]
mod concat;
#[path = "kernels/coords.rs"]
mod coords;
#[path = "kernels/elementwise.rs"]
mod elementwise;
#[path = "kernels/filter.rs"]
mod filter;
#[path = "kernels/gather.rs"]
mod gather;
#[path = "kernels/group.rs"]
mod group;
#[path = "kernels/histogram.rs"]
mod histogram;
#[path = "kernels/index.rs"]
mod index;
#[path = "kernels/indices.rs"]
mod indices;
#[path = "kernels/isin.rs"]
mod isin;
#[path = "kernels/normalize.rs"]
mod normalize;
#[path = "kernels/occurrences.rs"]
mod occurrences;
#[path = "kernels/reduce.rs"]
mod reduce;
#[path = "kernels/repeat.rs"]
mod repeat;
#[path = "kernels/reshape.rs"]
mod reshape;
#[path = "kernels/running.rs"]
mod running;
#[path = "kernels/scatter.rs"]
mod scatter;
#[path = "kernels/search.rs"]
mod search;
#[path = "kernels/select.rs"]
mod select;
#[path = "kernels/shape.rs"]
mod shape;
#[path = "kernels/sort.rs"]
mod sort;
#[path = "kernels/support.rs"]
mod support;
#[path = "kernels/take.rs"]
mod take;
#[path = "kernels/text.rs"]
mod text;
#[path = "kernels/unary.rs"]
mod unary;
#[path = "kernels/window.rs"]
mod window;
// DataFusion enables the feature of arrow that knows names of time zones.
#[cfg(feature = "sql")]
#[path = "kernels/zones.rs"]
mod zones;

use proptest::test_runner::Config;

/// Cases differ only in their seed, which a failing case prints; shrinking a seed would be of no
/// use.
fn configure_cases(cases: u32) -> Config {
    Config { cases, max_shrink_iters: 0, failure_persistence: None, ..Config::default() }
}
