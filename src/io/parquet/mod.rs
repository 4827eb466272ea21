//! Parquet with list columns.
