//! Queries over several processes: workers, and sessions that use them.
//!
//! A session with workers plans a statement as any other does. The finished physical plan is then cut:
//! scans are divided among the workers, and what is above them moves with them up to the first exchange
//! of rows. Everything that is not known to give the same answer in parts runs in the session.
//! `docs/scale.md` says what that is.

mod client;
mod codec;
mod nodes;
mod planner;
mod preflight;
mod settings;
mod tasks;
mod worker;

pub use client::{ClientConfig, Cluster};
pub use worker::{WorkerConfig, serve};

/// Version of a session and of its workers, which work together only if it is equal.
const VERSION: &str = concat!("serrate ", env!("CARGO_PKG_VERSION"), ", plans 1");
