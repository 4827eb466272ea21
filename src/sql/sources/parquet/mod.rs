//! Parquet: files as tables, COPY to them, and a scan that decodes list columns with Serrate's
//! decoder.

mod footers;
mod format;
mod logical_types;
mod scan;
mod statistics_bounds;
mod writer_options;

#[cfg(feature = "cluster")]
pub(in crate::sql) use footers::correct_received_footers;
pub(crate) use format::{ParquetFileFormat, ParquetFileFormatFactory};
#[cfg(feature = "cluster")]
pub(in crate::sql) use scan::ListsSource;
pub(crate) use scan::decode_lists;
pub(in crate::sql) use scan::make_window_scan;
