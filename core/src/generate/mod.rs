//! Generates any number of synthetic patients with realistic numbers of events and measurements.
//!
//! [`SyntheticPatients`] streams patients as chunks of a ragged table; [`mimic_table`] returns a
//! small number of patients in memory. The patients are drawn from [`PatientDistributions`].
//! [`SyntheticPatients::write_nrt`], `SyntheticPatients::write_parquet` and
//! `SyntheticPatients::write_meds` write files.

mod distributions;
#[cfg(feature = "parquet")]
mod meds;
mod patients;
mod write;

pub use distributions::PatientDistributions;
#[cfg(feature = "parquet")]
pub use meds::MedsWriteOptions;
pub use patients::{DEFAULT_CHUNK_ROWS, SyntheticPatients, mimic_table};
