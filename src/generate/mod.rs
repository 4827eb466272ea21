//! Synthetic patients of any number, with the shape of a real population.
//!
//! [`Patients`] streams them as chunks of a ragged table; [`mimic_table`] is a small number of them in
//! memory. What they look like is a [`Shape`]. [`Patients::write_nrt`],
//! `Patients::write_parquet` and `Patients::write_meds` put them into files.

#[cfg(feature = "parquet")]
mod meds;
mod patients;
mod shape;
mod write;

#[cfg(feature = "parquet")]
pub use meds::MedsWriteOptions;
pub use patients::{DEFAULT_CHUNK_ROWS, Patients, mimic_table};
pub use shape::Shape;
