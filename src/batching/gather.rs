//! Entries by position: reading them into a batch, writing them into entries that are there.

use std::ops::Range;

use arrow::buffer::Buffer;

use super::RaggedBatch;
use super::any::Entries;
use super::entries::{Entry, fill, filled, share, with_entry};
use super::structure::{coordinates, product};
use crate::array::{Layout, Offsets};
use crate::dense::{DType, DenseTensor};
use crate::error::{Error, Result};

/// A number that is a position.
pub(super) trait Position: Copy + Sync {
    fn wide(self) -> i64;
}

impl Position for i32 {
    #[inline(always)]
    fn wide(self) -> i64 {
        self.into()
    }
}

impl Position for i64 {
    #[inline(always)]
    fn wide(self) -> i64 {
        self
    }
}

/// Indices of a batch: one position per entry.
pub(super) struct Indices {
    values: DenseTensor,
    offsets: Offsets,
    batch_shape: Vec<usize>,
}

/// Runs `$body` with `$ids` bound to the positions as a typed slice.
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

impl Indices {
    /// Indices are integers without data axes; int32 and int64 are read in place.
    pub(super) fn new(batch: &RaggedBatch) -> Result<Self> {
        let values = batch.values();
        if values.ndim() != 1 || !values.dtype().is_integer() {
            return Err(Error::invalid(format!(
                "indices are integers of shape [batch axes.., positions], not {} of shape {:?}",
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

    /// The error for a position of a sample.
    #[cold]
    fn out_of_range(&self, sample: usize, position: usize, index: i64, size: usize) -> Error {
        let sample = coordinates(&self.batch_shape, sample);
        Error::NoSuchEntry { sample, position, index, size }
    }
}

/// Positions that may be asked for in a sample of `size` entries: its own, or those of filler, too.
#[derive(Clone, Copy)]
pub(super) struct Limit {
    pub(super) width: usize,
    /// Filler is out of range.
    pub(super) strict: bool,
}

impl Limit {
    fn of(self, size: usize) -> usize {
        if self.strict { size } else { self.width }
    }
}

/// Negative positions count from the end of what may be asked for.
#[inline(always)]
fn wrap(index: i64, limit: usize) -> Option<usize> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let index = if index < 0 { index + limit } else { index };
    usize::try_from(index).ok()
}

/// The entries at the positions: `[positions, entry shape..]`.
pub(super) fn gather(data: &Entries, indices: &Indices, strict: bool) -> Result<DenseTensor> {
    let limit = Limit { width: data.width, strict };
    let entry = data.entry();
    let count = indices.offsets.children();
    let mut shape = vec![count];
    shape.extend_from_slice(data.entry_shape());
    let positions = Layout::Ragged(indices.offsets.clone());
    let buffer = with_positions!(indices, ids => {
        if entry == 0 {
            check(&data.layout, ids, indices, limit)?;
            Buffer::from_vec(Vec::<u64>::new())
        } else {
            let bytes = count.checked_mul(entry);
            let bytes = bytes.ok_or_else(|| Error::invalid("more entries than there can be"))?;
            let filler = data.filler_entry();
            filled(bytes, |out| {
                with_entry!(entry, e => share(&positions, entry, out, true, &|samples, out| {
                    gather_part(e, data, (ids, indices), limit, &filler, samples, out)
                }))
            })?
        }
    });
    DenseTensor::try_new_trusted(data.values.dtype(), shape, buffer)
}

fn gather_part<E: Entry, I: Position>(
    e: E,
    data: &Entries,
    (ids, indices): (&[I], &Indices),
    limit: Limit,
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
        let limit = limit.of(size);
        let ids = &ids[indices.offsets.range(i)];
        let (out, after) = std::mem::take(&mut rest).split_at_mut(ids.len() * e.size());
        rest = after;
        for (j, id) in ids.iter().enumerate() {
            let at = wrap(id.wide(), limit);
            if at.is_some_and(|k| e.copy(out, j, own, k)) {
                continue;
            }
            if at.is_none_or(|k| k >= limit) {
                return Err(indices.out_of_range(i, j, id.wide(), limit));
            }
            e.copy(out, j, filler, 0);
        }
    }
    Ok(())
}

/// Checks positions of entries that have no bytes.
fn check<I: Position>(layout: &Layout, ids: &[I], indices: &Indices, limit: Limit) -> Result<()> {
    for i in 0..layout.lists() {
        let limit = limit.of(layout.length(i));
        for (j, id) in ids[indices.offsets.range(i)].iter().enumerate() {
            if wrap(id.wide(), limit).is_none_or(|k| k >= limit) {
                return Err(indices.out_of_range(i, j, id.wide(), limit));
            }
        }
    }
    Ok(())
}

/// What is there before entries are written.
pub(super) enum Before<'a> {
    /// A copy of these entries.
    Copy(&'a [u8]),
    /// One element, over and over.
    Fill(&'a [u8]),
}

/// Where entries are written.
pub(super) struct Target<'a> {
    pub(super) layout: &'a Layout,
    /// Shape of all entries together.
    pub(super) shape: Vec<usize>,
    pub(super) before: Before<'a>,
    pub(super) limit: Limit,
    /// Whether a position given twice is an error; otherwise the last one wins.
    pub(super) unique: bool,
}

/// The target with entry `j` of every sample of `from` at position `j` of its indices. What lands in
/// filler is not kept.
pub(super) fn scatter(
    from: &Entries,
    indices: &Indices,
    target: Target<'_>,
) -> Result<DenseTensor> {
    let lists = target.layout.lists();
    if let Some(i) = (0..lists).find(|i| from.layout.length(*i) < indices.offsets.length(*i)) {
        return Err(Error::invalid(format!(
            "{} has {} entries to write and {} indices to write them at",
            super::structure::sample(&indices.batch_shape, i),
            from.layout.length(i),
            indices.offsets.length(i)
        )));
    }
    let (entry, dtype) = (from.entry(), from.values.dtype());
    let bytes = product(&target.shape).checked_mul(dtype.size());
    let bytes = bytes.ok_or_else(|| Error::invalid("more entries than there can be"))?;
    let buffer = with_positions!(indices, ids => {
        if entry == 0 {
            check(target.layout, ids, indices, target.limit)?;
            Buffer::from_vec(Vec::<u64>::new())
        } else {
            filled(bytes, |out| {
                with_entry!(entry, e => share(target.layout, entry, out, true, &|samples, out| {
                    scatter_part(e, from, (ids, indices), &target, samples, out)
                }))
            })?
        }
    });
    DenseTensor::try_new_trusted(dtype, target.shape, buffer)
}

fn scatter_part<E: Entry, I: Position>(
    e: E,
    from: &Entries,
    (ids, indices): (&[I], &Indices),
    target: &Target<'_>,
    samples: Range<usize>,
    out: &mut [u8],
) -> Result<()> {
    let first = target.layout.ranges(0..samples.start).len();
    match target.before {
        Before::Copy(all) => {
            let start = first * e.size();
            out.copy_from_slice(&all[start..start + out.len()]);
        }
        // Fresh memory is zero.
        Before::Fill(value) if value.iter().all(|b| *b == 0) => {}
        Before::Fill(value) => fill(out, value),
    }
    let all = from.values.as_bytes();
    let mut seen = Seen::default();
    for i in samples {
        let own = target.layout.range(i);
        let limit = target.limit.of(own.len());
        let own = &mut out[(own.start - first) * e.size()..(own.end - first) * e.size()];
        let ids = &ids[indices.offsets.range(i)];
        let values = &all[from.layout.range(i).start * e.size()..];
        if target.unique {
            // Filler is not kept, so it does not matter what is written there twice.
            seen.next(own.len() / e.size());
        }
        for (j, id) in ids.iter().enumerate() {
            let at = wrap(id.wide(), limit);
            if target.unique
                && let Some(before) = at.and_then(|k| seen.before(k, j))
            {
                return Err(duplicate(indices, i, before, j, id.wide()));
            }
            if !at.is_some_and(|k| e.copy(own, k, values, j)) && at.is_none_or(|k| k >= limit) {
                return Err(indices.out_of_range(i, j, id.wide(), limit));
            }
        }
    }
    Ok(())
}

#[cold]
fn duplicate(indices: &Indices, i: usize, first: usize, second: usize, index: i64) -> Error {
    Error::invalid(format!(
        "{}: position {second} writes to index {index}, as position {first} does",
        super::structure::sample(&indices.batch_shape, i)
    ))
}

/// Positions of one sample that were written to, and by which of its indices.
#[derive(Default)]
struct Seen {
    sample: u32,
    places: Vec<(u32, usize)>,
}

impl Seen {
    /// Forgets all positions.
    fn next(&mut self, size: usize) {
        self.sample = self.sample.wrapping_add(1);
        if self.sample == 0 {
            self.places.clear();
            self.sample = 1;
        }
        if self.places.len() < size {
            self.places.resize(size, (0, 0));
        }
    }

    /// The index that wrote there before, else notes that `j` does.
    fn before(&mut self, k: usize, j: usize) -> Option<usize> {
        let (sample, index) = self.places.get_mut(k)?;
        if *sample == self.sample {
            return Some(*index);
        }
        (*sample, *index) = (self.sample, j);
        None
    }
}

/// A row of `targets` places for every sample, true at the positions.
pub(super) fn marks(indices: &Indices, targets: usize) -> Result<DenseTensor> {
    let mut shape = indices.batch_shape.clone();
    shape.push(targets);
    let options = crate::dense::DenseOptions::default();
    let bytes = super::structure::check_bytes(&shape, DType::Bool, &options, "a mask")?;
    let lists = indices.offsets.lists();
    let layout = Layout::Uniform { size: targets, lists };
    let buffer = with_positions!(indices, ids => {
        filled(bytes, |out| {
            share(&layout, 1, out, true, &|samples, out| {
                let first = samples.start;
                for i in samples {
                    let own = &mut out[(i - first) * targets..(i - first + 1) * targets];
                    for (j, id) in ids[indices.offsets.range(i)].iter().enumerate() {
                        match wrap(id.wide(), targets).and_then(|k| own.get_mut(k)) {
                            Some(place) => *place = 1,
                            None => return Err(indices.out_of_range(i, j, id.wide(), targets)),
                        }
                    }
                }
                Ok(())
            })
        })?
    });
    DenseTensor::try_new_trusted(DType::Bool, shape, buffer)
}
