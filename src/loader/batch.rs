//! [`Batch`]: named tensors, and what is in them.

use std::sync::Arc;

use super::options::Form;
use super::plan::Item;
use crate::dense::DenseTensor;
use crate::error::{Error, Result};

/// One batch: tensors by name, and the items they are made of.
///
/// Its memory goes back to the loader when the batch and all clones of its tensors are dropped, and
/// is used again for a later batch.
///
/// **Padded**, for a batch of `B` items: every column under its name with the shape `[B, d1, ..]`
/// down to its axis; `dim{d}/mask` (bool, `[B, d1, .. d]`): true where axis `d` has an element;
/// `{column}/valid` (bool, as the column): true where a column that has nulls in some shard has a
/// value.
///
/// **Packed**: every column under its name, flat; `dim{d}/cu_seqlens` (int32, `[B + 1]`, from 0):
/// where the elements of each item end on axis `d`; `dim{d}/position_ids` (flat): place of each
/// element of axis `d` within its item, from 0; for axes from 2 on also `dim{d}/offsets` (int32,
/// from 0): where each list of axis `d` ends, one list per element of the axis before (on axis 1
/// the lists are the items); `{column}/valid` (bool, flat).
#[derive(Clone, Debug)]
pub struct Batch {
    pub(super) number: usize,
    pub(super) form: Form,
    pub(super) items: Vec<Item>,
    pub(super) tensors: Vec<(Arc<str>, DenseTensor)>,
    /// Per axis from 0: all elements, and the most that one item has.
    pub(super) elements: Vec<(usize, usize)>,
    pub(super) occupied: usize,
}

impl Batch {
    /// Its number in the epoch (of the loader's [part](super::LoaderOptions::part)), from 0.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Whether it is padded or packed.
    pub fn form(&self) -> Form {
        self.form
    }

    /// Number of items: the length of the first axis of padded tensors.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether it has no items; no batch of an epoch is so.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Where each item is from.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// The tensors with their names: columns in order, then masks or lengths.
    pub fn tensors(&self) -> &[(Arc<str>, DenseTensor)] {
        &self.tensors
    }

    /// The same tensors, without the rest.
    pub fn into_tensors(self) -> Vec<(Arc<str>, DenseTensor)> {
        self.tensors
    }

    /// A tensor by name.
    ///
    /// # Errors
    /// When there is none; the error lists those there are.
    pub fn tensor(&self, name: &str) -> Result<&DenseTensor> {
        self.tensors.iter().find(|(n, _)| n.as_ref() == name).map(|(_, t)| t).ok_or_else(|| {
            let names: Vec<&str> = self.tensors.iter().map(|(n, _)| n.as_ref()).collect();
            Error::NoSuchColumn { name: name.into(), available: names.join(", ") }
        })
    }

    /// Number of elements of an axis in all items, cut ones included; 0 is the items.
    ///
    /// # Errors
    /// When no tensor of the batch lives on that axis or a deeper one.
    pub fn axis_len(&self, axis: usize) -> Result<usize> {
        Ok(self.axis(axis)?.0)
    }

    /// Most elements of an axis that one item has: the `max_seqlen` that goes with
    /// `dim{d}/cu_seqlens`.
    ///
    /// # Errors
    /// As [`axis_len`](Self::axis_len).
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

    /// Bytes of all tensors.
    pub fn nbytes(&self) -> usize {
        self.tensors.iter().map(|(_, t)| t.nbytes()).sum()
    }

    /// Bytes of the cells that are not padding.
    pub fn occupied_bytes(&self) -> usize {
        self.occupied
    }
}
