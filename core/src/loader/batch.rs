//! [`Batch`]: named tensors and the items that they were built from.

use std::sync::Arc;

use super::items::BatchItem;
use super::options::BatchForm;
use crate::dense::DenseTensor;
use crate::error::{Error, Result};

/// One batch: tensors by name, and the [items](BatchItem) that they were built from.
///
/// The memory of a batch returns to the loader when the batch and all clones of its tensors are
/// dropped.
///
/// A **padded** batch of `B` items has one tensor per column, with the name of the column and the
/// shape `[B, d1, ..]`: `[B]` for a column on axis 0, `[B, d1]` on axis 1, and so on; `dim{d}/mask`
/// (bool, shape of a column on axis `d`), true where axis `d` has an element; and, for columns with
/// nulls in any shard, `{column}/valid` (bool, shape of the column), true where it has a value.
///
/// A **packed** batch has one flat tensor per column, with the name of the column;
/// `dim{d}/cu_seqlens` (int32, `[B + 1]`, from 0): the cumulative lengths of the items on axis `d`;
/// `dim{d}/position_ids` (flat): the index of each element of axis `d` within its item; for axes
/// from 2 on also `dim{d}/offsets` (int32, from 0): the offsets of the lists of axis `d`, one list
/// per element of the previous axis; `{column}/valid` (bool, flat).
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::UInt16Array;
/// # use serrate::table::RaggedTable;
/// use serrate::loader::{BatchForm, Loader, LoaderOptions};
/// let table = RaggedTable::builder()
///     .lengths([2, 1])?
///     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9])))
///     .build()?;
/// let loader = Loader::try_new([table], LoaderOptions::new(2))?;
/// let batch = loader.epoch(0)?.next().unwrap()?;
/// assert_eq!((batch.number(), batch.form(), batch.len()), (0, BatchForm::Padded, 2));
/// assert_eq!(batch.tensor("code")?.to_string(), "uint16[2, 2] [[7, 8], [9, 0]]");
/// let names: Vec<&str> = batch.tensors().iter().map(|(name, _)| name.as_ref()).collect();
/// assert_eq!(names, ["code", "dim1/mask"]);
/// let second = &batch.items()[1];
/// assert_eq!((second.shard, second.row, second.events.clone()), (0, 1, 0..1));
/// assert_eq!((batch.axis_len(1)?, batch.max_seqlen(1)?), (3, 2));
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Batch {
    pub(super) number: usize,
    pub(super) form: BatchForm,
    pub(super) items: Vec<BatchItem>,
    pub(super) tensors: Vec<(Arc<str>, DenseTensor)>,
    pub(super) axes: Vec<AxisCounts>,
    pub(super) occupied: usize,
}

/// Numbers of elements on one axis: in the whole batch, and in its longest item.
#[derive(Clone, Copy, Debug)]
pub(super) struct AxisCounts {
    pub(super) total: usize,
    pub(super) longest_item: usize,
}

impl Batch {
    /// Returns the index of the batch in this process's [part](super::LoaderOptions::part) of the
    /// epoch.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use serrate::arrow::array::UInt16Array;
    /// use serrate::loader::{Loader, LoaderOptions};
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .lengths([3, 1])?
    ///     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9, 4])))
    ///     .build()?;
    /// let loader = Loader::try_new([table], LoaderOptions::new(2))?;
    /// let batch = loader.epoch(0)?.next().unwrap()?;
    /// assert_eq!(batch.number(), 0);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn number(&self) -> usize {
        self.number
    }

    /// Returns whether the batch is padded or packed.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use serrate::arrow::array::UInt16Array;
    /// use serrate::loader::{BatchForm, Loader, LoaderOptions};
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .lengths([3, 1])?
    ///     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9, 4])))
    ///     .build()?;
    /// let loader = Loader::try_new([table], LoaderOptions::new(2))?;
    /// let batch = loader.epoch(0)?.next().unwrap()?;
    /// assert_eq!(batch.form(), BatchForm::Padded);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn form(&self) -> BatchForm {
        self.form
    }

    /// Returns the number of items, which is the size of the first axis of padded tensors.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use serrate::arrow::array::UInt16Array;
    /// use serrate::loader::{Loader, LoaderOptions};
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .lengths([3, 1])?
    ///     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9, 4])))
    ///     .build()?;
    /// let loader = Loader::try_new([table], LoaderOptions::new(2))?;
    /// let batch = loader.epoch(0)?.next().unwrap()?;
    /// assert_eq!(batch.len(), 2);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns whether the batch has no items.
    ///
    /// A batch of an epoch always has items.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use serrate::arrow::array::UInt16Array;
    /// use serrate::loader::{Loader, LoaderOptions};
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .lengths([3, 1])?
    ///     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9, 4])))
    ///     .build()?;
    /// let loader = Loader::try_new([table], LoaderOptions::new(2))?;
    /// let batch = loader.epoch(0)?.next().unwrap()?;
    /// assert!(!batch.is_empty());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns the items and their source rows.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use serrate::arrow::array::UInt16Array;
    /// use serrate::loader::{Loader, LoaderOptions};
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .lengths([3, 1])?
    ///     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9, 4])))
    ///     .build()?;
    /// let loader = Loader::try_new([table], LoaderOptions::new(2))?;
    /// let batch = loader.epoch(0)?.next().unwrap()?;
    /// assert_eq!((batch.items()[0].row, batch.items()[1].row), (0, 1));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn items(&self) -> &[BatchItem] {
        &self.items
    }

    /// Returns the tensors with their names: first those of the columns, then masks (padded
    /// batches) or offsets (packed batches).
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use serrate::arrow::array::UInt16Array;
    /// use serrate::loader::{Loader, LoaderOptions};
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .lengths([3, 1])?
    ///     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9, 4])))
    ///     .build()?;
    /// let loader = Loader::try_new([table], LoaderOptions::new(2))?;
    /// let batch = loader.epoch(0)?.next().unwrap()?;
    /// assert_eq!(batch.tensors()[0].0.as_ref(), "code");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn tensors(&self) -> &[(Arc<str>, DenseTensor)] {
        &self.tensors
    }

    /// Converts the batch to its tensors with their names; drops the [items](BatchItem) that they
    /// were built from.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use serrate::arrow::array::UInt16Array;
    /// use serrate::loader::{Loader, LoaderOptions};
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .lengths([3, 1])?
    ///     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9, 4])))
    ///     .build()?;
    /// let loader = Loader::try_new([table], LoaderOptions::new(2))?;
    /// let batch = loader.epoch(0)?.next().unwrap()?;
    /// assert_eq!(batch.into_tensors()[0].1.shape(), [2, 3]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn into_tensors(self) -> Vec<(Arc<str>, DenseTensor)> {
        self.tensors
    }

    /// Returns a tensor by name.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use serrate::arrow::array::UInt16Array;
    /// use serrate::loader::{Loader, LoaderOptions};
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .lengths([3, 1])?
    ///     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9, 4])))
    ///     .build()?;
    /// let loader = Loader::try_new([table], LoaderOptions::new(2))?;
    /// let batch = loader.epoch(0)?.next().unwrap()?;
    /// assert_eq!(batch.tensor("code")?.as_slice::<u16>()?, [7, 8, 9, 4, 0, 0]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such tensor; the message lists the names.
    pub fn tensor(&self, name: &str) -> Result<&DenseTensor> {
        self.tensors.iter().find(|(n, _)| n.as_ref() == name).map(|(_, t)| t).ok_or_else(|| {
            let names: Vec<&str> = self.tensors.iter().map(|(n, _)| n.as_ref()).collect();
            Error::NoSuchColumn { name: name.into(), available: names.join(", ") }
        })
    }

    /// Returns the number of elements of all items on an axis, before truncation by
    /// [`sizes`](super::LoaderOptions::sizes).
    ///
    /// The elements of axis 0 are the items.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use serrate::arrow::array::UInt16Array;
    /// use serrate::loader::{Loader, LoaderOptions};
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .lengths([3, 1])?
    ///     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9, 4])))
    ///     .build()?;
    /// let loader = Loader::try_new([table], LoaderOptions::new(2))?;
    /// let batch = loader.epoch(0)?.next().unwrap()?;
    /// assert_eq!((batch.axis_len(0)?, batch.axis_len(1)?), (2, 4));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If no tensor of the batch has this axis.
    pub fn axis_len(&self, axis: usize) -> Result<usize> {
        Ok(self.axis(axis)?.total)
    }

    /// Returns the largest number of elements of one item on an axis.
    ///
    /// Attention functions that take `dim{d}/cu_seqlens` also need this number.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use serrate::arrow::array::UInt16Array;
    /// use serrate::loader::{Loader, LoaderOptions};
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .lengths([3, 1])?
    ///     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9, 4])))
    ///     .build()?;
    /// let loader = Loader::try_new([table], LoaderOptions::new(2))?;
    /// let batch = loader.epoch(0)?.next().unwrap()?;
    /// assert_eq!(batch.max_seqlen(1)?, 3);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`axis_len`](Self::axis_len).
    pub fn max_seqlen(&self, axis: usize) -> Result<usize> {
        Ok(self.axis(axis)?.longest_item)
    }

    fn axis(&self, axis: usize) -> Result<AxisCounts> {
        self.axes.get(axis).copied().ok_or_else(|| Error::NoSuchAxis {
            what: "the batch".into(),
            axis: i64::try_from(axis).unwrap_or(i64::MAX),
            ndim: self.axes.len(),
        })
    }

    /// Returns the size of all tensors in bytes.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use serrate::arrow::array::UInt16Array;
    /// use serrate::loader::{Loader, LoaderOptions};
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .lengths([3, 1])?
    ///     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9, 4])))
    ///     .build()?;
    /// let loader = Loader::try_new([table], LoaderOptions::new(2))?;
    /// let batch = loader.epoch(0)?.next().unwrap()?;
    /// assert!(batch.nbytes() >= 6 * 2); // the tensor `code` and its mask
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn nbytes(&self) -> usize {
        self.tensors.iter().map(|(_, t)| t.nbytes()).sum()
    }

    /// Returns the number of bytes that are not padding.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::UInt16Array;
    /// # use serrate::table::RaggedTable;
    /// use serrate::loader::{Loader, LoaderOptions};
    /// let table = RaggedTable::builder()
    ///     .lengths([2, 1])?
    ///     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9])))
    ///     .build()?;
    /// let batch = Loader::try_new([table], LoaderOptions::new(2))?.epoch(0)?.next().unwrap()?;
    /// assert_eq!((batch.number(), batch.is_empty(), batch.axis_len(1)?), (0, false, 3));
    /// // Four codes of two bytes and a mask of four bytes. One code and one byte of the mask are
    /// // padding.
    /// assert_eq!((batch.nbytes(), batch.occupied_bytes()), (12, 9));
    /// assert_eq!(batch.into_tensors()[0].0.as_ref(), "code");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn occupied_bytes(&self) -> usize {
        self.occupied
    }
}
