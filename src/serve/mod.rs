//! `serrate serve`: a server for clients of Flight SQL.
//!
//! ```text
//! client
//!  |  server      listens, limits connections, shuts down
//!  |  auth        checks the token
//!  |  sessions    finds the session of the request
//!  v
//! service        dispatches the commands of Flight SQL (`commands`)
//!  |  statement   parses and plans through `crate::sql`, refuses settings of the server
//!  |  admission   a limit of running queries, with a queue
//!  |  query       runs a plan on the threads for queries
//!  v
//! flight_messages   batches as messages of bounded size
//! wire_types        the types that clients know
//! ```
//!
//! A request names its session by a cookie or by a bearer token that a handshake returned. A
//! request with neither uses the session of its connection. Each session has its own settings and
//! tables. All sessions share the memory, the files and the limit of queries.

mod admission;
mod auth;
mod catalog;
mod commands;
mod connection;
mod flight_messages;
mod http;
mod info;
mod ingest;
mod ingestion;
mod metrics;
mod parameters;
mod query;
mod ready_result;
mod request_origin;
mod server;
mod service;
mod sessions;
mod statement;
mod status;
mod wire_types;

pub(crate) use crate::secret::TlsIdentity;
pub(crate) use metrics::CountWorkers;
pub(crate) use server::{ServeConfig, serve_clients};
pub(crate) use sessions::AttachSession;
