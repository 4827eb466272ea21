//! Runs the server `serrate serve` and calls it as clients of Flight SQL do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "serve/answers.rs"]
mod answers;
#[path = "serve/limits.rs"]
mod limits;
#[path = "serve/process.rs"]
mod process;
#[path = "serve/safety.rs"]
mod safety;
#[cfg(feature = "cluster")]
#[path = "common/worker_process.rs"]
mod worker_process;
#[cfg(feature = "cluster")]
#[path = "serve/workers.rs"]
mod workers;
