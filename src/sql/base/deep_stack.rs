//! Runs planning on a stack that is large enough for deep expressions.

/// Size in bytes of a new stack, on which planning runs if the current stack has less than half
/// this size left. A stack takes no memory until it is used.
const STACK: usize = 64 << 20;

/// Runs `work` on a stack that is large enough for the deepest expressions and syntax trees that
/// [`check_depth`](crate::sql::statement::parsing::depth::check_depth) accepts.
pub(in crate::sql) fn call_on_deep_stack<T>(work: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(STACK / 2, STACK, work)
}

/// Polls a future on the stack of [`call_on_deep_stack`].
pub(in crate::sql) async fn run_deep<F: Future>(work: F) -> F::Output {
    let mut work = std::pin::pin!(work);
    std::future::poll_fn(|waker| call_on_deep_stack(|| work.as_mut().poll(waker))).await
}
