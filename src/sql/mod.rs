//! The session, table providers, file formats and planners.
