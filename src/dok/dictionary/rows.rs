//! Rows of key columns as rows of bytes.

use crate::dense::{DType, DenseTensor};
use crate::error::{Error, Result};

/// Bytes of a row with so many bytes of columns: one of the widths that the map is fastest with.
pub(super) fn width(bytes: usize) -> usize {
    const WIDTHS: [usize; 5] = [4, 8, 12, 16, 24];
    WIDTHS.into_iter().find(|w| *w >= bytes).unwrap_or(bytes.next_multiple_of(8))
}

/// Rows that get their columns one after the other.
pub(super) struct Packed {
    bytes: Vec<u8>,
    rows: usize,
    width: usize,
    filled: usize,
}

impl Packed {
    pub(super) fn new(rows: usize, width: usize) -> Result<Self> {
        let bytes = rows.checked_mul(width).filter(|b| isize::try_from(*b).is_ok());
        let bytes = bytes.ok_or_else(|| Error::invalid(format!("{rows} keys at once")))?;
        Ok(Self { bytes: vec![0; bytes], rows, width, filled: 0 })
    }

    /// Adds a column; floating point numbers are made canonical, as keys are.
    pub(super) fn push(&mut self, values: &DenseTensor) -> Result<()> {
        let size = values.dtype().size();
        if values.num_elements() != self.rows || self.filled + size > self.width {
            return Err(Error::invalid("a key column that does not fit the others"));
        }
        let bytes = crate::dok::canonical(values)?;
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

/// The column that begins at a byte of every row.
pub(super) fn unpack(rows: &DenseTensor, first: usize, dtype: DType) -> Result<DenseTensor> {
    let width = rows.shape().get(1).copied().unwrap_or(1).max(1);
    let size = dtype.size();
    let mut out = Vec::with_capacity(rows.nbytes() / width * size);
    for row in rows.as_bytes().chunks_exact(width) {
        out.extend_from_slice(&row[first..][..size]);
    }
    let buffer = arrow::buffer::Buffer::from_vec(out);
    DenseTensor::try_new(dtype, [rows.nbytes() / width], buffer)
}

/// Some of the rows.
pub(super) fn take(rows: &DenseTensor, which: &[u64]) -> Result<DenseTensor> {
    let width = rows.shape().get(1).copied().unwrap_or(0);
    let mut out = Vec::with_capacity(which.len() * width);
    for row in which {
        let row = usize::try_from(*row).map_err(|_| Error::invalid("a row beyond all"))?;
        out.extend_from_slice(&rows.as_bytes()[row * width..][..width]);
    }
    DenseTensor::from_vec([which.len(), width], out)
}
