//! Gather and scatter of entries by index.

use std::ops::Range;

use arrow::buffer::Buffer;

use super::RaggedBatch;
use super::any::EntryView;
use super::entry_copies::{EntryBytes, fill_buffer, for_each_part, repeat_value, with_entry};
use super::structure::{multiply_saturating, unravel_position};
use crate::array::{Layout, Offsets};
use crate::dense::{DType, DenseTensor};
use crate::error::{Error, Result};
use crate::kernels::scatter::DuplicateWrites;

pub(super) trait IndexInteger: Copy + Sync {
    fn to_i64(self) -> i64;
}

impl IndexInteger for i32 {
    #[inline(always)]
    fn to_i64(self) -> i64 {
        self.into()
    }
}

impl IndexInteger for i64 {
    #[inline(always)]
    fn to_i64(self) -> i64 {
        self
    }
}

pub(super) struct BatchIndices {
    values: DenseTensor,
    offsets: Offsets,
    batch_shape: Vec<usize>,
}

/// Evaluates `$body` with `$ids` bound to the indices as a slice of i32 or i64.
macro_rules! with_positions {
    ($indices:expr, $ids:ident => $body:expr) => {
        match $indices.values.dtype() {
            DType::I32 => {
                let $ids: &[i32] = $indices.values.as_slice()?;
                $body
            }
            _ => {
                let $ids: &[i64] = $indices.values.as_slice()?;
                $body
            }
        }
    };
}

impl BatchIndices {
    /// Reads indices from a batch of integers without data axes. Shares the buffer of int32 or
    /// int64 indices.
    pub(super) fn new(batch: &RaggedBatch) -> Result<Self> {
        let values = batch.values();
        if values.ndim() != 1 || !values.dtype().is_integer() {
            return Err(Error::invalid(format!(
                "the indices have the type {} and the shape {:?}; give integers of shape [batch axes.., positions]",
                values.dtype(),
                batch.shape()
            )));
        }
        let values = match values.dtype() {
            DType::I32 | DType::I64 => values.clone(),
            _ => values.cast(DType::I64)?,
        };
        let (offsets, batch_shape) = (batch.offsets().clone(), batch.batch_shape().to_vec());
        Ok(Self { values, offsets, batch_shape })
    }

    pub(super) fn batch_shape(&self) -> &[usize] {
        &self.batch_shape
    }

    #[cold]
    fn make_range_error(&self, sample: usize, position: usize, index: i64, size: usize) -> Error {
        let sample = unravel_position(&self.batch_shape, sample);
        Error::NoSuchEntry { sample, position, index, size }
    }
}

/// Determines which indices are valid in a sample of `n` entries: `0..n` if `strict` is set, else
/// `0..width`, where `width` is the padded size of the sample.
#[derive(Clone, Copy)]
pub(super) struct IndexLimit {
    pub(super) width: usize,
    pub(super) strict: bool,
}

impl IndexLimit {
    fn choose_width(self, size: usize) -> usize {
        if self.strict { size } else { self.width }
    }
}

/// Returns the position to which an index refers; a negative index counts from `limit`, so -1 gives
/// `limit - 1`. Returns `None` for an index less than `-limit`, but does not check for an index of
/// `limit` or more: the caller must do so.
#[inline(always)]
fn resolve_position(index: i64, limit: usize) -> Option<usize> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let index = if index < 0 { index + limit } else { index };
    usize::try_from(index).ok()
}

/// Returns the entries of `data` at the indices, one sample after the other, as a tensor
/// `[number of all indices, entry shape..]`.
pub(super) fn gather_entries(
    data: &EntryView,
    indices: &BatchIndices,
    limit: IndexLimit,
) -> Result<DenseTensor> {
    let entry = data.entry_bytes();
    let count = indices.offsets.children();
    let mut shape = vec![count];
    shape.extend_from_slice(data.entry_shape());
    let positions = Layout::Ragged(indices.offsets.clone());
    let buffer = with_positions!(indices, ids => {
        if entry == 0 {
            check_positions(&data.layout, ids, indices, limit)?;
            Buffer::from_vec(Vec::<u64>::new())
        } else {
            let bytes = count.checked_mul(entry);
            let bytes = bytes.ok_or_else(|| {
                Error::invalid(format!(
                    "{count} entries of {entry} byte(s) each are selected, more than memory can address; select fewer entries"
                ))
            })?;
            let filler = data.filler_entry();
            fill_buffer(bytes, |out| {
                with_entry!(entry, e => {
                    for_each_part(&positions, entry, out, true, &|samples, out| {
                        gather_part(e, data, (ids, indices), limit, &filler, samples, out)
                    })
                })
            })?
        }
    });
    DenseTensor::try_new_trusted(data.values.dtype(), shape, buffer)
}

fn gather_part<E: EntryBytes, I: IndexInteger>(
    e: E,
    data: &EntryView,
    (ids, indices): (&[I], &BatchIndices),
    limit: IndexLimit,
    filler: &[u8],
    samples: Range<usize>,
    out: &mut [u8],
) -> Result<()> {
    let all = data.values.as_bytes();
    let mut rest = out;
    for i in samples {
        let own = data.layout.range(i);
        let size = own.len();
        let own = &all[own.start * e.size()..own.end * e.size()];
        let limit = limit.choose_width(size);
        let ids = &ids[indices.offsets.range(i)];
        let (out, after) = std::mem::take(&mut rest).split_at_mut(ids.len() * e.size());
        rest = after;
        for (j, id) in ids.iter().enumerate() {
            let at = resolve_position(id.to_i64(), limit);
            if at.is_some_and(|k| e.copy(out, j, own, k)) {
                continue;
            }
            if at.is_none_or(|k| k >= limit) {
                return Err(indices.make_range_error(i, j, id.to_i64(), limit));
            }
            e.copy(out, j, filler, 0);
        }
    }
    Ok(())
}

/// Returns an error if an index is out of range. Needed only for entries of 0 bytes, which are not
/// copied: the copy of larger entries checks the indices itself.
fn check_positions<I: IndexInteger>(
    layout: &Layout,
    ids: &[I],
    indices: &BatchIndices,
    limit: IndexLimit,
) -> Result<()> {
    for i in 0..layout.lists() {
        let limit = limit.choose_width(layout.length(i));
        for (j, id) in ids[indices.offsets.range(i)].iter().enumerate() {
            if resolve_position(id.to_i64(), limit).is_none_or(|k| k >= limit) {
                return Err(indices.make_range_error(i, j, id.to_i64(), limit));
            }
        }
    }
    Ok(())
}

pub(super) enum TargetStart<'a> {
    Copy(&'a [u8]),
    Fill(&'a [u8]),
}

pub(super) struct ScatterTarget<'a> {
    pub(super) layout: &'a Layout,
    pub(super) shape: Vec<usize>,
    pub(super) before: TargetStart<'a>,
    pub(super) limit: IndexLimit,
    pub(super) duplicates: DuplicateWrites,
}

/// Fills the result with `target.before`, then writes entry `j` of each sample of `from` at the
/// `j`-th index of the sample. An index that points to padding is an error if `target.limit.strict`
/// is set, else it is ignored.
pub(super) fn scatter_entries(
    from: &EntryView,
    indices: &BatchIndices,
    target: ScatterTarget<'_>,
) -> Result<DenseTensor> {
    let lists = target.layout.lists();
    if let Some(i) = (0..lists).find(|i| from.layout.length(*i) < indices.offsets.length(*i)) {
        return Err(Error::invalid(format!(
            "the number of entries of {sample} in to_write or input_data is {entries}, but the number of its indices in output_indices is {indices}; give at least one entry per index",
            sample = super::structure::name_sample(&indices.batch_shape, i),
            entries = from.layout.length(i),
            indices = indices.offsets.length(i)
        )));
    }
    let (entry, dtype) = (from.entry_bytes(), from.values.dtype());
    let bytes = multiply_saturating(&target.shape).checked_mul(dtype.size());
    let bytes = bytes.ok_or_else(|| {
        Error::invalid(format!(
            "a result of type {dtype} and shape {:?} has more bytes than memory can address; use smaller samples, or a smaller output_num_targets in functions that take it",
            target.shape
        ))
    })?;
    let buffer = with_positions!(indices, ids => {
        if entry == 0 {
            check_positions(target.layout, ids, indices, target.limit)?;
            Buffer::from_vec(Vec::<u64>::new())
        } else {
            fill_buffer(bytes, |out| {
                with_entry!(entry, e => {
                    for_each_part(target.layout, entry, out, true, &|samples, out| {
                        scatter_part(e, from, (ids, indices), &target, samples, out)
                    })
                })
            })?
        }
    });
    DenseTensor::try_new_trusted(dtype, target.shape, buffer)
}

fn scatter_part<E: EntryBytes, I: IndexInteger>(
    e: E,
    from: &EntryView,
    (ids, indices): (&[I], &BatchIndices),
    target: &ScatterTarget<'_>,
    samples: Range<usize>,
    out: &mut [u8],
) -> Result<()> {
    let first = target.layout.ranges(0..samples.start).len();
    match target.before {
        TargetStart::Copy(all) => {
            let start = first * e.size();
            out.copy_from_slice(&all[start..start + out.len()]);
        }
        // `out` is new memory and already zero, so zeros need not be written.
        TargetStart::Fill(value) if value.iter().all(|b| *b == 0) => {}
        TargetStart::Fill(value) => repeat_value(out, value),
    }
    let all = from.values.as_bytes();
    let refuses_duplicates = target.duplicates == DuplicateWrites::Refuse;
    let mut seen = WrittenPositions::default();
    for i in samples {
        let own = target.layout.range(i);
        let limit = target.limit.choose_width(own.len());
        let own = &mut out[(own.start - first) * e.size()..(own.end - first) * e.size()];
        let ids = &ids[indices.offsets.range(i)];
        let values = &all[from.layout.range(i).start * e.size()..];
        if refuses_duplicates {
            // Record writes to the entries of this sample, but not to padding: an index that points
            // to padding may repeat, because its write is dropped.
            seen.start_sample(own.len() / e.size());
        }
        for (j, id) in ids.iter().enumerate() {
            let at = resolve_position(id.to_i64(), limit);
            if refuses_duplicates && let Some(before) = at.and_then(|k| seen.record_write(k, j)) {
                return Err(make_duplicate_error(indices, i, before, j, id.to_i64()));
            }
            if !at.is_some_and(|k| e.copy(own, k, values, j)) && at.is_none_or(|k| k >= limit) {
                return Err(indices.make_range_error(i, j, id.to_i64(), limit));
            }
        }
    }
    Ok(())
}

#[cold]
fn make_duplicate_error(
    indices: &BatchIndices,
    i: usize,
    first: usize,
    second: usize,
    index: i64,
) -> Error {
    Error::invalid(format!(
        "the indices of {sample} at positions {first} and {second} both refer to entry {index}; remove one of the two, or set DuplicateWrites::Last to keep the last value",
        sample = super::structure::name_sample(&indices.batch_shape, i)
    ))
}

/// Records the written entries of the current sample: `places[k]` has the last sample whose entry
/// `k` was written, and the position of the index that wrote this entry. Records of earlier samples
/// are ignored, so they need not be cleared.
#[derive(Default)]
struct WrittenPositions {
    sample: u32,
    size: usize,
    places: Vec<(u32, usize)>,
}

impl WrittenPositions {
    fn start_sample(&mut self, size: usize) {
        self.sample = self.sample.wrapping_add(1);
        if self.sample == 0 {
            self.places.clear();
            self.sample = 1;
        }
        self.size = size;
        if self.places.len() < size {
            self.places.resize(size, (0, 0));
        }
    }

    /// Returns the position of the index that wrote entry `k` of this sample. If no index has
    /// written the entry, records `j` as this position and returns `None`.
    fn record_write(&mut self, k: usize, j: usize) -> Option<usize> {
        let (sample, index) = self.places.get_mut(..self.size)?.get_mut(k)?;
        if *sample == self.sample {
            return Some(*index);
        }
        (*sample, *index) = (self.sample, j);
        None
    }
}

/// Returns a `Bool` tensor with `targets` elements per sample. Element `k` of a sample is true if
/// `k` is one of the indices of the sample.
pub(super) fn mark_positions(indices: &BatchIndices, targets: usize) -> Result<DenseTensor> {
    let mut shape = indices.batch_shape.clone();
    shape.push(targets);
    let options = crate::dense::DenseOptions::default();
    let bytes = super::structure::check_bytes(&shape, DType::Bool, &options, "a mask")?;
    let lists = indices.offsets.lists();
    let layout = Layout::Uniform { size: targets, lists };
    let buffer = with_positions!(indices, ids => {
        fill_buffer(bytes, |out| {
            for_each_part(&layout, 1, out, true, &|samples, out| {
                let first = samples.start;
                for i in samples {
                    let own = &mut out[(i - first) * targets..(i - first + 1) * targets];
                    for (j, id) in ids[indices.offsets.range(i)].iter().enumerate() {
                        match resolve_position(id.to_i64(), targets).and_then(|k| own.get_mut(k)) {
                            Some(place) => *place = 1,
                            None => return Err(indices.make_range_error(i, j, id.to_i64(), targets)),
                        }
                    }
                }
                Ok(())
            })
        })?
    });
    DenseTensor::try_new_trusted(DType::Bool, shape, buffer)
}
