//! Parquet: files as tables, COPY to them, and a scan of our own for list columns.

mod floats;
mod format;
mod scan;

pub(crate) use format::{ParquetFileFormat, ParquetFileFormatFactory};
pub(crate) use scan::ParquetLists;
pub(in crate::sql) use scan::windowed;
