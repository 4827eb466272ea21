//! Sources in FROM and targets of COPY: tables in memory, files, health records, sparse tensors.

pub(in crate::sql) mod arrow_files;
pub(in crate::sql) mod asof;
pub(in crate::sql) mod cohort;
pub(in crate::sql) mod cuts;
pub(crate) mod dok;
pub(in crate::sql) mod empty;
pub(crate) mod features;
pub(in crate::sql) mod from;
pub(in crate::sql) mod json;
pub(in crate::sql) mod listing;
pub(in crate::sql) mod meds;
pub(in crate::sql) mod nrt;
pub(in crate::sql) mod output;
pub(in crate::sql) mod parquet;
pub(in crate::sql) mod relation;
pub(in crate::sql) mod safetensors;
pub(in crate::sql) mod table;
pub(in crate::sql) mod training;
pub(in crate::sql) mod urls;
pub(in crate::sql) mod visible;
pub(in crate::sql) mod whole;
pub(in crate::sql) mod written;
