//! Synthetic patients of any number, with the shape of a real population.
//!
//! [`Patients`] streams them as chunks of a ragged table; [`mimic_table`] is a small number of them in
//! memory. What they look like is a [`Shape`].

mod patients;
mod shape;

pub use patients::{DEFAULT_CHUNK_ROWS, Patients, mimic_table};
pub use shape::Shape;
