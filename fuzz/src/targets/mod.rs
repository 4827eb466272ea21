//! The fuzz targets, one per module. Each passes the input to a reader and checks properties of the
//! result.

pub mod arrow;
pub mod cohort;
pub mod dok;
pub mod header;
pub mod index;
pub mod json;
pub mod labels;
pub mod lists;
pub mod meds;
pub mod nrt;
pub mod parquet;
pub mod tensors;
pub mod vocabulary;
pub mod words;
pub mod write;

/// The name of a target, and the function that runs it on an input.
type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: &[Target] = &[
    ("header", header::run),
    ("nrt", nrt::run),
    ("write", write::run),
    ("tensors", tensors::run),
    ("dok", dok::run),
    ("arrow", arrow::run),
    ("parquet", parquet::run),
    ("lists", lists::run),
    ("json", json::run),
    ("index", index::run),
    ("meds", meds::run),
    ("vocabulary", vocabulary::run),
    ("labels", labels::run),
    ("cohort", cohort::run),
    ("words", words::run),
];
