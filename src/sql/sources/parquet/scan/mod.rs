//! Scans Parquet files with [`lists`](crate::io::parquet::lists), Serrate's decoder of list
//! columns. The rule [`decode_lists`] plans such scans.
//!
//! DataFusion's scan prunes row groups, decodes flat columns, evaluates conditions on these, and
//! applies a limit unless a condition reads lists. It also returns the number of each row, and this
//! module decodes the lists of these rows. DataFusion alone reads a file if the decoder supports
//! none of its list columns, for example because their values are strings, or because their types
//! differ from the table's.

mod bytes;
mod cut;
mod list_rows;
mod lists_rule;
mod lists_source;
mod opener;
mod scan_split;

pub(in crate::sql) use cut::make_window_scan;
pub(crate) use lists_rule::decode_lists;
#[cfg(feature = "cluster")]
pub(in crate::sql) use lists_source::ListsSource;
