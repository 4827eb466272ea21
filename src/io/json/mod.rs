//! JSON and NDJSON of nested lists.
