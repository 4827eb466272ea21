//! [`decode_lists`]: decodes list columns of Parquet with [`lists`](crate::io::parquet::lists).
//!
//! DataFusion's scan prunes, decodes flat columns, evaluates conditions on them, and applies a
//! limit unless a condition needs lists. It also returns row numbers, and this module decodes the
//! lists of these rows. DataFusion alone reads a file if the decoder supports none of its list
//! columns, for example because their values are strings, or because their types differ from those
//! of the table.

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
