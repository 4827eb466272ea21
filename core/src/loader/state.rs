//! [`LoaderState`]: the state that all epochs of a loader share.

use std::sync::Arc;

use super::items::EpochItems;
use super::loader_source::{ColumnValues, LoaderSource};
use super::options::LoaderOptions;
use super::tensor_output::TensorOutput;
use crate::dense::DType;

#[derive(Debug)]
pub(super) struct LoaderState {
    pub(super) source: LoaderSource,
    pub(super) options: LoaderOptions,
    pub(super) items: EpochItems,
    pub(super) targets: Vec<LoaderTarget>,
    pub(super) outputs: Vec<TensorOutput>,
    pub(super) largest_shape: Vec<usize>,
    /// Test hook: called with the index of each batch before the batch is built.
    #[cfg(test)]
    pub(super) before: Option<fn(usize)>,
}

/// A column to predict. It has one value per base, the row or label that is divided into items.
#[derive(Debug)]
pub(super) struct LoaderTarget {
    pub(super) name: Arc<str>,
    pub(super) dtype: DType,
    pub(super) nulls: bool,
    pub(super) values: ColumnValues,
}
