//! Queries over several processes: workers, and sessions that use the workers.
//!
//! A session plans a statement as without workers, then divides the physical plan: the workers
//! share the partitions of each scan, and run the nodes above the scan up to the first exchange of
//! rows. A statement whose answer the division could change runs in the session; `docs/scale.md`
//! lists these statements.

mod attach_session;
mod client;
mod cluster_exec;
mod cluster_planner;
mod codec;
mod losses;
mod nodes;
mod preflight;
mod settings;
mod subqueries_first;
mod tasks;
mod worker_functions;
mod worker_server;

pub use crate::secret::TlsIdentity;
pub use client::{ClientConfig, Cluster};
#[doc(hidden)]
pub use preflight::{decode_plan, encode_plan, make_worker_context};
pub use worker_server::{WorkerConfig, serve};

/// Version of this build. A session uses only workers of the same version.
const VERSION: &str = concat!("serrate ", env!("CARGO_PKG_VERSION"), ", plans 2");
