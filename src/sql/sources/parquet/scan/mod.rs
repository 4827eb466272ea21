//! [`ParquetLists`]: columns of lists in scans of Parquet files, decoded by
//! [`io::parquet::lists`](crate::io::parquet::lists).
//!
//! The scan of DataFusion stays in charge of what it does well: it prunes files, row groups and pages,
//! decodes flat columns, tests conditions on them and counts rows under a limit. Beside them it is
//! asked for the number of every row it gives, and the lists of these rows are decoded here. Files that
//! do not fit (another type than the table's, values of variable width) are read by DataFusion's scan as
//! if there was no other.

mod bytes;
mod cut;
mod opener;
mod parts;
mod rows;
mod rule;
mod source;

pub(in crate::sql) use cut::windowed;
pub(crate) use rule::ParquetLists;
