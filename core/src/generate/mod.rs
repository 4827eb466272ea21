//! Generator of synthetic patients, in any number, with the shape of a real population.
//!
//! [`Patients`] streams patients as chunks of a ragged table; [`mimic_table`] returns a small number
//! of patients in memory. [`PatientDistributions`] are what the patients are drawn from.
//! [`Patients::write_nrt`], `Patients::write_parquet` and `Patients::write_meds` write files.

mod distributions;
#[cfg(feature = "parquet")]
mod meds;
mod patients;
mod write;

pub use distributions::PatientDistributions;
#[cfg(feature = "parquet")]
pub use meds::MedsWriteOptions;
pub use patients::{DEFAULT_CHUNK_ROWS, Patients, mimic_table};
