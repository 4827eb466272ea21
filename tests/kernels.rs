//! Kernels against slow and obvious references on nested vectors, over arrays in their worst form.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]
#![allow(unreachable_pub)]

mod common;

#[path = "kernels/choose.rs"]
mod choose;
#[path = "kernels/counts.rs"]
mod counts;
#[path = "kernels/elementwise.rs"]
mod elementwise;
#[path = "kernels/group.rs"]
mod group;
#[path = "kernels/index.rs"]
mod index;
#[path = "kernels/leaves.rs"]
mod leaves;
#[path = "kernels/lists.rs"]
mod lists;
#[path = "kernels/reduce.rs"]
mod reduce;
#[path = "kernels/running.rs"]
mod running;
#[path = "kernels/shape.rs"]
mod shape;
#[path = "kernels/sort.rs"]
mod sort;
#[path = "kernels/text.rs"]
mod text;
#[path = "kernels/window.rs"]
mod window;
#[path = "kernels/zones.rs"]
mod zones;

use proptest::test_runner::Config;

/// Cases are identified by their seed; a failing case prints its seed and is not shrunk.
fn cases(cases: u32) -> Config {
    Config { cases, max_shrink_iters: 0, failure_persistence: None, ..Config::default() }
}
