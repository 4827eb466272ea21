//! The server, as clients of Flight SQL use it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "serve/answers.rs"]
mod answers;
#[path = "serve/limits.rs"]
mod limits;
#[path = "serve/process.rs"]
mod process;
#[path = "serve/safety.rs"]
mod safety;
