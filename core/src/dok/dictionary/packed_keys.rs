//! Packs the key columns of a row into bytes, which are the key of the hash map.

use crate::dense::{DType, DenseTensor};
use crate::error::{Error, Result};

/// Returns the width of a packed key of `bytes` bytes after padding. For at most 24 bytes, this is
/// the next width for which the map has specialized code; for more bytes, the next multiple of 8.
pub(super) fn compute_padded_width(bytes: usize) -> usize {
    const WIDTHS: [usize; 5] = [4, 8, 12, 16, 24];
    WIDTHS.into_iter().find(|w| *w >= bytes).unwrap_or(bytes.next_multiple_of(8))
}

pub(super) struct PackedRows {
    bytes: Vec<u8>,
    rows: usize,
    width: usize,
    filled: usize,
}

impl PackedRows {
    pub(super) fn new(rows: usize, width: usize) -> Result<Self> {
        let bytes = rows.checked_mul(width).filter(|b| isize::try_from(*b).is_ok());
        let bytes = bytes.ok_or_else(|| {
            Error::invalid(format!(
                "the packed keys of a batch of {rows} rows exceed the address space; use smaller batches"
            ))
        })?;
        Ok(Self { bytes: vec![0; bytes], rows, width, filled: 0 })
    }

    /// Appends a key column; replaces -0.0 with 0.0 and every NaN with the same NaN.
    pub(super) fn push(&mut self, values: &DenseTensor) -> Result<()> {
        let size = values.dtype().size();
        if values.num_elements() != self.rows || self.filled + size > self.width {
            return Err(Error::invalid(format!(
                "a key column has {} row(s) of {size} byte(s), but {} row(s) of at most {} byte(s) are expected; give key columns of equal length and of the declared types",
                values.num_elements(),
                self.rows,
                self.width - self.filled
            )));
        }
        let bytes = crate::dok::canonicalize_keys(values)?;
        macro_rules! put {
            ($n:literal) => {
                for (row, value) in
                    self.bytes.chunks_exact_mut(self.width).zip(bytes.as_chunks::<$n>().0)
                {
                    if let Some(to) = row[self.filled..].first_chunk_mut() {
                        *to = *value;
                    }
                }
            };
        }
        match size {
            1 => put!(1),
            2 => put!(2),
            4 => put!(4),
            _ => put!(8),
        }
        self.filled += size;
        Ok(())
    }

    pub(super) fn finish(self) -> Result<DenseTensor> {
        DenseTensor::from_vec([self.rows, self.width], self.bytes)
    }
}

pub(super) fn unpack_column(rows: &DenseTensor, first: usize, dtype: DType) -> Result<DenseTensor> {
    let width = rows.shape().get(1).copied().unwrap_or(1).max(1);
    let size = dtype.size();
    let mut out = Vec::with_capacity(rows.nbytes() / width * size);
    for row in rows.as_bytes().chunks_exact(width) {
        out.extend_from_slice(&row[first..][..size]);
    }
    let buffer = arrow::buffer::Buffer::from_vec(out);
    DenseTensor::try_new(dtype, [rows.nbytes() / width], buffer)
}

pub(super) fn take_rows(rows: &DenseTensor, which: &[u64]) -> Result<DenseTensor> {
    let width = rows.shape().get(1).copied().unwrap_or(0);
    let mut out = Vec::with_capacity(which.len() * width);
    for row in which {
        let row = usize::try_from(*row).map_err(|_| {
            Error::invalid("the dictionary has more rows than memory can address; use fewer keys")
        })?;
        out.extend_from_slice(&rows.as_bytes()[row * width..][..width]);
    }
    DenseTensor::from_vec([which.len(), width], out)
}
