//! Parquet: files as tables, COPY to them, and a scan of our own for columns of lists.

mod floats;
mod format;
mod scan;

pub use format::{ParquetFileFormat, ParquetFileFormatFactory};
pub use scan::ParquetLists;
pub(super) use scan::windowed;
