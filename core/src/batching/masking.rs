//! Filters and writes entries of all samples by mask.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::any::{EntryView, to_dense};
use super::entry_copies::{EntryBytes, fill_buffer, for_each_part, repeat_value, with_entry};
use super::indexing::check_same_entries;
use super::masks::{MaskFlags, count_true, for_each_true, mask_to_bool};
use super::pad::convert_fill;
use super::structure::{SampleStructure, multiply_saturating};
use super::{AnyBatch, RaggedBatch};
use crate::array::{Layout, Offsets};
use crate::dense::{DType, DenseTensor, Fill};
use crate::error::{Error, Result};
use crate::index::broadcast_shape::{broadcast_shapes, for_each_broadcast};

struct MaskedData {
    entries: EntryView,
    flags: MaskFlags,
    batch_shape: Vec<usize>,
    /// One list per sample; its length is the number of entries of the sample at which the mask is
    /// true.
    kept: Offsets,
}

impl MaskedData {
    fn new(data: &AnyBatch, mask: &AnyBatch) -> Result<Self> {
        let one = |batch: &RaggedBatch, what: &str| match batch.num_batch_dims() {
            1 => Ok(()),
            n => Err(Error::invalid(format!(
                "{what} with {n} batch axes cannot be combined with a dense tensor; call flatten_batch_dims first to get one batch axis"
            ))),
        };
        match (data, mask) {
            (AnyBatch::Ragged(data), AnyBatch::Ragged(mask)) => {
                data.structure().check_same_sizes(mask.structure(), "data and mask")?;
            }
            (AnyBatch::Ragged(data), AnyBatch::Dense(_)) => one(data, "data")?,
            (AnyBatch::Dense(_), AnyBatch::Ragged(mask)) => one(mask, "a mask")?,
            (AnyBatch::Dense(_), AnyBatch::Dense(_)) => {}
        }
        let (batch_shape, dim) = match (data, mask) {
            (AnyBatch::Ragged(data), _) => (data.batch_shape().to_vec(), data.non_uniform_dim()),
            (_, mask) => (mask.shape().first().copied().into_iter().collect(), 1),
        };
        let flags = MaskFlags::new(mask, batch_shape.len())?;
        if mask.shape()[..batch_shape.len()] != batch_shape {
            return Err(Error::invalid(format!(
                "the data has batch axes of shape {batch_shape:?}, but the mask has the shape {:?}; give a mask that begins with the batch axes of the data",
                mask.shape()
            )));
        }
        let entries = EntryView::new(data, &batch_shape, dim)?;
        let width = mask.shape()[batch_shape.len()];
        if width != entries.width {
            return Err(Error::invalid(format!(
                "the data has the size {} along the non-uniform axis, but the last axis of the mask has the size {width}; give a mask whose last axis has the size of the data",
                entries.width
            )));
        }
        let mut masked = Self { entries, flags, batch_shape, kept: Offsets::empty() };
        let samples = masked.entries.layout.lists();
        masked.kept =
            Offsets::from_lengths((0..samples).map(|i| count_true(masked.find_retained_flags(i))))?;
        Ok(masked)
    }

    fn find_retained_flags(&self, i: usize) -> &[u8] {
        self.flags.get_sample(i, self.entries.layout.length(i))
    }

    fn filter_entries(&self) -> Result<DenseTensor> {
        let entry = self.entries.entry_bytes();
        let count = self.kept.children();
        let mut shape = vec![count];
        shape.extend_from_slice(self.entries.entry_shape());
        let kept = Layout::Ragged(self.kept.clone());
        let buffer = fill_buffer(count.saturating_mul(entry), |out| {
            if entry == 0 {
                return Ok(());
            }
            with_entry!(entry, e => for_each_part(&kept, entry, out, true, &|samples, out| {
                self.filter_part(e, samples, out);
                Ok(())
            }))
        })?;
        DenseTensor::try_new_trusted(self.entries.values.dtype(), shape, buffer)
    }

    fn filter_part<E: EntryBytes>(&self, e: E, samples: Range<usize>, out: &mut [u8]) {
        let all = self.entries.values.as_bytes();
        let mut next = 0;
        for i in samples {
            let own = &all[self.entries.layout.range(i).start * e.size()..];
            for_each_true(self.find_retained_flags(i), |k| {
                e.copy(out, next, own, k);
                next += 1;
            });
        }
    }

    /// Returns a copy of the data. In each sample, the entries of `from` replace, in order, the
    /// entries at which the mask is true.
    fn write_entries(&self, from: &RaggedBatch) -> Result<DenseTensor> {
        let entry = self.entries.entry_bytes();
        let values = &self.entries.values;
        let buffer = fill_buffer(values.nbytes(), |out| {
            if entry == 0 {
                return Ok(());
            }
            let layout = &self.entries.layout;
            with_entry!(entry, e => for_each_part(layout, entry, out, true, &|samples, out| {
                self.write_part(e, from, samples, out);
                Ok(())
            }))
        })?;
        DenseTensor::try_new_trusted(values.dtype(), values.shape().to_vec(), buffer)
    }

    fn write_part<E: EntryBytes>(
        &self,
        e: E,
        from: &RaggedBatch,
        samples: Range<usize>,
        out: &mut [u8],
    ) {
        let layout = &self.entries.layout;
        let first = layout.ranges(0..samples.start).len();
        let start = first * e.size();
        out.copy_from_slice(&self.entries.values.as_bytes()[start..start + out.len()]);
        let values = from.values().as_bytes();
        for i in samples {
            let own = &mut out[(layout.range(i).start - first) * e.size()..];
            let values = &values[from.offsets().range(i).start * e.size()..];
            let mut next = 0;
            for_each_true(self.find_retained_flags(i), |k| {
                e.copy(own, k, values, next);
                next += 1;
            });
        }
    }
}

/// Returns, for each sample, the entries at which the mask is true, in order.
///
/// The mask is bool, of shape `[batch axes.., entries]`. It applies to ragged data along the
/// non-uniform axis (along which samples differ in size), and to a tensor along axis 1. If the data
/// or the mask is a tensor, there is one batch axis, and the tensor has the sample sizes of the
/// other argument. Padding is never returned, even where the mask is true. The padding of the
/// result is 0, and its width is the size of its largest sample. A sample whose mask is nowhere
/// true has no entries.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::batching::batched_bool_indexing;
/// use serrate::dense::DenseTensor;
/// let data = DenseTensor::from_vec([2, 3], vec![1, 2, 3, 4, 5, 6])?;
/// let mask = DenseTensor::from_bools([2, 3], [true, false, true, false, true, false])?;
/// let kept = batched_bool_indexing(&data, &mask)?;
/// assert_eq!(kept.tensor()?.to_string(), "int32[2, 2] [[1, 3], [5, 0]]");
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the mask is not bool or has data axes; if batch axes, widths or sample sizes differ (the
/// message names the sample); or if there are several batch axes and one argument is a tensor.
pub fn batched_bool_indexing(
    input_data: impl Into<AnyBatch>,
    input_mask: impl Into<AnyBatch>,
) -> Result<RaggedBatch> {
    let masked = MaskedData::new(&input_data.into(), &input_mask.into())?;
    let values = masked.filter_entries()?;
    let dim = masked.entries.dim;
    let structure = SampleStructure::try_new(masked.batch_shape, masked.kept, None, DType::I64)?;
    RaggedBatch::from_parts(structure.into(), values, dim)
}

/// Returns a copy of `to_write_into` in which the entries of `to_write` replace, sample by sample
/// and in order, the entries at which the mask is true.
///
/// This is the inverse of [`batched_bool_indexing`]. The result is a tensor if `to_write_into` is a
/// tensor, else a batch with the sample sizes of `to_write_into`.
///
/// The mask must have a shape that [`batched_bool_indexing`] accepts for the data `to_write_into`.
/// `to_write` and `to_write_into` have the same type, and the same shape except along the
/// non-uniform axis. A sample whose mask is nowhere true does not change.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::batching::{batched_bool_indexing, batched_bool_indexing_write};
/// use serrate::dense::DenseTensor;
/// let data = DenseTensor::from_vec([2, 3], vec![1, 2, 3, 4, 5, 6])?;
/// let mask = DenseTensor::from_bools([2, 3], [true, false, true, false, true, false])?;
/// let kept = batched_bool_indexing(&data, &mask)?;
/// let zeros = DenseTensor::from_vec([2, 3], vec![0; 6])?;
/// let back = batched_bool_indexing_write(&kept, &mask, &zeros)?;
/// assert_eq!(back.to_tensor()?.to_string(), "int32[2, 3] [[1, 0, 3], [0, 5, 0]]");
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// Same as [`batched_bool_indexing`]; also if a sample of `to_write` does not have one entry per
/// true value of the mask (the message names the sample), or types or entry shapes differ.
pub fn batched_bool_indexing_write(
    to_write: &RaggedBatch,
    output_mask: impl Into<AnyBatch>,
    to_write_into: impl Into<AnyBatch>,
) -> Result<AnyBatch> {
    let into = to_write_into.into();
    let masked = MaskedData::new(&into, &output_mask.into())?;
    if to_write.batch_shape() != masked.batch_shape {
        return Err(Error::invalid(format!(
            "to_write has batch axes of shape {:?}, but output_mask has batch axes of shape {:?}; give to_write the batch axes of output_mask",
            to_write.batch_shape(),
            masked.batch_shape
        )));
    }
    if let Some(i) = to_write.offsets().first_difference(&masked.kept) {
        return Err(Error::invalid(format!(
            "the number of entries of {sample} in to_write is {entries}, but the number of its true values in output_mask is {slots}; give one entry per true value",
            sample = to_write.structure().name_sample(i),
            entries = to_write.offsets().length(i),
            slots = masked.kept.length(i)
        )));
    }
    let from =
        EntryView::new(&to_write.into(), to_write.batch_shape(), to_write.non_uniform_dim())?;
    check_same_entries(&from, &masked.entries)?;
    let values = masked.write_entries(to_write)?;
    let dim = masked.entries.dim;
    match into {
        AnyBatch::Ragged(batch) => Ok(batch.replace_values(values, dim)?.into()),
        AnyBatch::Dense(_) => {
            Ok(to_dense(&values, &masked.batch_shape, masked.entries.width, dim)?.into())
        }
    }
}

/// Replaces the data with `value_to_set` where the mask is false.
///
/// The axes of the bool mask are the first axes of the data; axes of size 1 broadcast. A mask
/// without elements changes nothing.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::batching::apply_mask_to_tensor;
/// use serrate::dense::DenseTensor;
/// let data = DenseTensor::from_vec([2, 2], vec![1.5f32, 2.5, 3.5, 4.5])?;
/// let mask = DenseTensor::from_bools([2], [true, false])?;
/// let out = apply_mask_to_tensor(&data, &mask, -1.0)?;
/// assert_eq!(out.to_string(), "float32[2, 2] [[1.5, 2.5], [-1.0, -1.0]]");
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the mask is not bool, has too many axes or does not broadcast, or the type cannot represent
/// the value.
pub fn apply_mask_to_tensor(
    data: &DenseTensor,
    mask: &DenseTensor,
    value_to_set: impl Into<Fill>,
) -> Result<DenseTensor> {
    let value = convert_fill(value_to_set.into(), data.dtype())?;
    if mask.dtype() != DType::Bool {
        return Err(Error::invalid(format!(
            "the mask has the type {}; cast it to bool",
            mask.dtype()
        )));
    }
    if mask.num_elements() == 0 {
        return Ok(data.clone());
    }
    let Some(own) = data.shape().get(..mask.ndim()) else {
        return Err(Error::invalid(format!(
            "a mask of shape {:?} has more axes than data of shape {:?}; give a mask with at most as many axes as the data",
            mask.shape(),
            data.shape()
        )));
    };
    if broadcast_shapes(mask.shape(), own).as_deref() != Some(own) {
        return Err(Error::invalid(format!(
            "a mask of shape {:?} does not broadcast to the first axes of data of shape {:?}; give a mask whose sizes are 1 or the sizes of the data",
            mask.shape(),
            data.shape()
        )));
    }
    let run = multiply_saturating(&data.shape()[mask.ndim()..]).saturating_mul(data.dtype().size());
    let flags = mask.as_bytes();
    let buffer = fill_buffer(data.nbytes(), |out| {
        out.copy_from_slice(data.as_bytes());
        if out.is_empty() {
            return Ok(());
        }
        let mut runs = out.chunks_exact_mut(run);
        for_each_broadcast(mask.shape(), own, |place| {
            if let Some(out) = runs.next().filter(|_| flags[place] == 0) {
                repeat_value(out, value.as_bytes());
            }
        });
        Ok(())
    })?;
    DenseTensor::try_new_trusted(data.dtype(), data.shape().to_vec(), buffer)
}

/// A collection of tensors to convert to batches: one tensor, a list or tuple, a map by name, or a
/// custom type.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::batching::{CompactFields, RaggedBatch, get_compact_from_named_tuple};
/// use serrate::dense::DenseTensor;
///
/// struct Boxes { corners: DenseTensor, source: &'static str }
/// struct CompactBoxes { corners: RaggedBatch, source: &'static str }
///
/// impl CompactFields for Boxes {
///     type Compact = CompactBoxes;
///     fn compact(
///         self,
///         each: &mut dyn FnMut(&DenseTensor) -> serrate::Result<RaggedBatch>,
///     ) -> serrate::Result<CompactBoxes> {
///         Ok(CompactBoxes { corners: each(&self.corners)?, source: self.source })
///     }
/// }
///
/// let mask = DenseTensor::from_bools([1, 3], [false, true, true])?;
/// let corners = DenseTensor::from_vec([1, 3], vec![1.0f32, 2.0, 3.0])?;
/// let out = get_compact_from_named_tuple(&mask, Boxes { corners, source: "camera" })?;
/// assert_eq!(out.corners.tensor()?.to_string(), "float32[1, 2] [[2.0, 3.0]]");
/// assert_eq!(out.source, "camera");
/// # Ok::<(), serrate::Error>(())
/// ```
pub trait CompactFields {
    /// The collection after conversion: it has a batch in place of each tensor.
    type Compact;

    /// Calls `each` for every tensor of the collection, and keeps all fields that are not tensors.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::{CompactFields, RaggedBatch};
    /// use serrate::dense::DenseTensor;
    /// let tensor = DenseTensor::from_vec([1, 2], vec![1, 2])?;
    /// let batch = tensor.compact(&mut |t| RaggedBatch::from_full_tensor(t, 1, 1))?;
    /// assert_eq!(batch.shape(), [1, 2]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `each` fails.
    fn compact(
        self,
        each: &mut dyn FnMut(&DenseTensor) -> Result<RaggedBatch>,
    ) -> Result<Self::Compact>;
}

impl CompactFields for DenseTensor {
    type Compact = RaggedBatch;

    fn compact(
        self,
        each: &mut dyn FnMut(&DenseTensor) -> Result<RaggedBatch>,
    ) -> Result<RaggedBatch> {
        each(&self)
    }
}

/// A field of a collection whose tensors are converted to batches: a tensor or a value of another
/// type.
#[derive(Clone, Debug, PartialEq)]
pub enum BatchField<T> {
    /// A tensor, which becomes a batch.
    Tensor(DenseTensor),
    /// A value of another type, which the conversion keeps.
    Other(T),
}

/// A [`BatchField`] after [`get_compact_lists`] converted its tensor to a batch.
#[derive(Clone, Debug, PartialEq)]
pub enum CompactField<T> {
    /// The batch that was built from the tensor of a field.
    Batch(RaggedBatch),
    /// A value of another type, which the conversion kept.
    Other(T),
}

impl<T> CompactFields for BatchField<T> {
    type Compact = CompactField<T>;

    fn compact(
        self,
        each: &mut dyn FnMut(&DenseTensor) -> Result<RaggedBatch>,
    ) -> Result<Self::Compact> {
        Ok(match self {
            Self::Tensor(tensor) => CompactField::Batch(each(&tensor)?),
            Self::Other(other) => CompactField::Other(other),
        })
    }
}

impl<T: CompactFields> CompactFields for Vec<T> {
    type Compact = Vec<T::Compact>;

    fn compact(
        self,
        each: &mut dyn FnMut(&DenseTensor) -> Result<RaggedBatch>,
    ) -> Result<Self::Compact> {
        self.into_iter().map(|t| t.compact(each)).collect()
    }
}

impl<K: Ord, T: CompactFields> CompactFields for BTreeMap<K, T> {
    type Compact = BTreeMap<K, T::Compact>;

    fn compact(
        self,
        each: &mut dyn FnMut(&DenseTensor) -> Result<RaggedBatch>,
    ) -> Result<Self::Compact> {
        self.into_iter().map(|(k, t)| Ok((k, t.compact(each)?))).collect()
    }
}

impl<T: CompactFields> CompactFields for (String, T) {
    type Compact = (String, T::Compact);

    fn compact(
        self,
        each: &mut dyn FnMut(&DenseTensor) -> Result<RaggedBatch>,
    ) -> Result<Self::Compact> {
        Ok((self.0, self.1.compact(each)?))
    }
}

/// Converts each tensor `[samples, entries, ..]` to a batch of the entries whose mask is true, like
/// [`batched_bool_indexing`].
///
/// All batches share sample sizes. The mask has the shape `[samples, entries]` and is bool, or
/// numeric with nonzero as true. In a list of [`BatchField`]s, elements that are not tensors are
/// kept. A sample whose mask is nowhere true has no entries.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::batching::{CompactField, BatchField, get_compact_lists};
/// use serrate::dense::DenseTensor;
/// let mask = DenseTensor::from_bools([2, 2], [false, true, true, true])?;
/// let ids = DenseTensor::from_vec([2, 2], vec![1, 2, 3, 4])?;
/// let out = get_compact_lists(&mask, vec![BatchField::Tensor(ids), BatchField::Other("kept")])?;
/// let CompactField::Batch(ids) = &out[0] else { unreachable!() };
/// assert_eq!(ids.tensor()?.to_string(), "int32[2, 2] [[2, 0], [3, 4]]");
/// assert_eq!(out[1], CompactField::Other("kept"));
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the mask does not have two axes, or the first two axes of a tensor differ from those of the
/// mask.
pub fn get_compact_lists<T: CompactFields>(
    mask: &DenseTensor,
    data: Vec<T>,
) -> Result<Vec<T::Compact>> {
    get_compact_from_named_tuple(mask, data)
}

/// Converts the tensors of any [`CompactFields`] type to batches, like [`get_compact_lists`]: a
/// sample whose mask is nowhere true has no entries.
///
/// ```
/// # use serrate_core as serrate;
/// use std::collections::BTreeMap;
/// use serrate::batching::get_compact_from_named_tuple;
/// use serrate::dense::DenseTensor;
/// let mask = DenseTensor::from_bools([2, 2], [false, true, true, true])?;
/// let ids = DenseTensor::from_vec([2, 2], vec![1, 2, 3, 4])?;
/// let out = get_compact_from_named_tuple(&mask, BTreeMap::from([("ids", ids)]))?;
/// assert_eq!(out["ids"].tensor()?.to_string(), "int32[2, 2] [[2, 0], [3, 4]]");
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// Same as [`get_compact_lists`]; also the errors of [`CompactFields::compact`] of the type.
pub fn get_compact_from_named_tuple<T: CompactFields>(
    mask: &DenseTensor,
    data: T,
) -> Result<T::Compact> {
    let mask = mask_to_bool(mask)?.into_owned();
    let (batch, mask) = match *mask.shape() {
        [samples, _] => ([samples], AnyBatch::Dense(mask)),
        ref shape => {
            return Err(Error::invalid(format!(
                "the mask has the shape {shape:?}; give a mask with two axes, samples and entries"
            )));
        }
    };
    let mut shared: Option<Arc<SampleStructure>> = None;
    data.compact(&mut |tensor| {
        let masked = MaskedData::new(&tensor.into(), &mask)?;
        let values = masked.filter_entries()?;
        let structure = match &shared {
            Some(structure) => Arc::clone(structure),
            None => {
                let made = SampleStructure::try_new(batch.to_vec(), masked.kept, None, DType::I64)?;
                Arc::clone(shared.insert(made.into()))
            }
        };
        RaggedBatch::from_parts(structure, values, 1)
    })
}
