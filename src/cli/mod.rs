//! The `serrate` command.
