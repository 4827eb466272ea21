//! [`Batch`]: named tensors and the items that they were built from.

use std::sync::Arc;

use super::items::Item;
use super::options::Form;
use crate::dense::DenseTensor;
use crate::error::{Error, Result};

/// One batch: tensors by name, and the [items](Item) that they were built from.
///
/// The memory of a batch returns to the loader when the batch and all clones of its tensors are
/// dropped.
///
/// A **padded** batch of `B` items has every column under its name with the shape `[B, d1, ..]`
/// down to the axis of the column; `dim{d}/mask` (bool, `[B, d1, .. d]`), true where axis `d` has
/// an element; and, for columns with nulls in any shard, `{column}/valid` (bool, shape of the
/// column), true where the column has a value.
///
/// A **packed** batch has every column under its name, flat; `dim{d}/cu_seqlens` (int32, `[B + 1]`,
/// from 0): the cumulative lengths of the items on axis `d`; `dim{d}/position_ids` (flat): the
/// index of each element of axis `d` within its item; for axes from 2 on also `dim{d}/offsets`
/// (int32, from 0): the offsets of the lists of axis `d`, one list per element of the previous axis
/// (on axis 1 the lists are the items); `{column}/valid` (bool, flat).
#[derive(Clone, Debug)]
pub struct Batch {
    pub(super) number: usize,
    pub(super) form: Form,
    pub(super) items: Vec<Item>,
    pub(super) tensors: Vec<(Arc<str>, DenseTensor)>,
    /// Per axis from 0: the number of elements in the batch, and the largest number of elements in one
    /// [`Item`].
    pub(super) elements: Vec<(usize, usize)>,
    pub(super) occupied: usize,
}

impl Batch {
    /// Returns the index of the batch among the batches that this process builds in the epoch (its
    /// [part](super::LoaderOptions::part)).
    pub fn number(&self) -> usize {
        self.number
    }

    /// Returns whether the batch is padded or packed.
    pub fn form(&self) -> Form {
        self.form
    }

    /// Returns the number of items, which is the size of the first axis of padded tensors.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns whether the batch has no items. A batch of an epoch always has items.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns the items and their source rows.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// Returns the tensors with their names: first the columns, then masks or offsets.
    pub fn tensors(&self) -> &[(Arc<str>, DenseTensor)] {
        &self.tensors
    }

    /// Converts the batch to its tensors with their names. The [items](Item) that they were built from are
    /// dropped.
    pub fn into_tensors(self) -> Vec<(Arc<str>, DenseTensor)> {
        self.tensors
    }

    /// Returns a tensor by name.
    ///
    /// # Errors
    /// If there is no such tensor; the message lists the names.
    pub fn tensor(&self, name: &str) -> Result<&DenseTensor> {
        self.tensors.iter().find(|(n, _)| n.as_ref() == name).map(|(_, t)| t).ok_or_else(|| {
            let names: Vec<&str> = self.tensors.iter().map(|(n, _)| n.as_ref()).collect();
            Error::NoSuchColumn { name: name.into(), available: names.join(", ") }
        })
    }

    /// Returns the number of elements of an axis in all items, before truncation by
    /// [`sizes`](super::LoaderOptions::sizes). Axis 0 has the items.
    ///
    /// # Errors
    /// If no tensor of the batch has this axis.
    pub fn axis_len(&self, axis: usize) -> Result<usize> {
        Ok(self.axis(axis)?.0)
    }

    /// Returns the largest number of elements of an axis in one item, for use with
    /// `dim{d}/cu_seqlens`.
    ///
    /// # Errors
    /// Same as [`axis_len`](Self::axis_len).
    pub fn max_seqlen(&self, axis: usize) -> Result<usize> {
        Ok(self.axis(axis)?.1)
    }

    fn axis(&self, axis: usize) -> Result<(usize, usize)> {
        self.elements.get(axis).copied().ok_or_else(|| Error::NoSuchAxis {
            what: "the batch".into(),
            axis: i64::try_from(axis).unwrap_or(i64::MAX),
            ndim: self.elements.len(),
        })
    }

    /// Returns the size of all tensors in bytes.
    pub fn nbytes(&self) -> usize {
        self.tensors.iter().map(|(_, t)| t.nbytes()).sum()
    }

    /// Returns the number of bytes that are not padding.
    pub fn occupied_bytes(&self) -> usize {
        self.occupied
    }
}
