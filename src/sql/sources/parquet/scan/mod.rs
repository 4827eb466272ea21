//! [`ParquetLists`]: decodes list columns in scans of Parquet files with
//! [`io::parquet::lists`](crate::io::parquet::lists).
//!
//! DataFusion's scan does the rest: it prunes files, row groups and pages, decodes flat columns,
//! evaluates conditions on them and counts rows under a limit. It also returns the number of each
//! row, and the lists of these rows are decoded here. Files that do not fit (another type than the
//! table's, values of variable width) are read by DataFusion's scan alone.

mod bytes;
mod cut;
mod opener;
mod parts;
mod rows;
mod rule;
mod source;

pub(in crate::sql) use cut::windowed;
pub(crate) use rule::ParquetLists;
