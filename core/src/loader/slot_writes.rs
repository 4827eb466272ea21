//! Implementations of [`WriteSlots`]. They copy values, copy float32 values and make them finite,
//! write for each value whether it is a number (not NaN), or write 1 for each value, as masks do.

use super::padded_grid::WriteSlots;

/// Copies the values of one item (a window of a row) to a padded tensor. Each value has `N` bytes.
pub(super) struct ValueCopier<'a, const N: usize> {
    pub(super) values: &'a [u8],
    /// Index of the item's first value among all values of the batch.
    pub(super) first: usize,
}

impl<const N: usize> WriteSlots for ValueCopier<'_, N> {
    #[inline]
    fn put(&mut self, first: usize, cell: &mut [u8]) {
        let at = (first - self.first) * N;
        cell.copy_from_slice(&self.values[at..at + cell.len()]);
    }
}

pub(super) struct FiniteCopier<'a> {
    pub(super) values: &'a [u8],
    pub(super) first: usize,
}

impl WriteSlots for FiniteCopier<'_> {
    #[inline]
    fn put(&mut self, first: usize, cell: &mut [u8]) {
        let at = (first - self.first) * 4;
        write_finite(&self.values[at..at + cell.len()], cell);
    }
}

pub(super) struct NumberFlags<'a> {
    pub(super) values: &'a [u8],
    pub(super) first: usize,
}

impl WriteSlots for NumberFlags<'_> {
    #[inline]
    fn put(&mut self, first: usize, cell: &mut [u8]) {
        let at = (first - self.first) * 4;
        write_is_number(&self.values[at..at + cell.len() * 4], cell);
    }
}

pub(super) struct WriteOnes;

impl WriteSlots for WriteOnes {
    #[inline]
    fn put(&mut self, _: usize, cell: &mut [u8]) {
        cell.fill(1);
    }
}

/// Copies float32 values in native byte order. NaN becomes 0, and infinities become the largest
/// finite numbers.
#[inline]
pub(super) fn write_finite(values: &[u8], out: &mut [u8]) {
    for (value, out) in values.as_chunks::<4>().0.iter().zip(out.as_chunks_mut().0) {
        let value = f32::from_ne_bytes(*value);
        let finite = if value.is_nan() { 0.0 } else { value.clamp(f32::MIN, f32::MAX) };
        *out = finite.to_ne_bytes();
    }
}

/// Writes one byte per float32 value in native byte order: 1 if the value is not NaN, else 0.
#[inline]
pub(super) fn write_is_number(values: &[u8], out: &mut [u8]) {
    for (value, out) in values.as_chunks::<4>().0.iter().zip(out) {
        *out = u8::from(!f32::from_ne_bytes(*value).is_nan());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nan_becomes_zero_and_is_flagged() {
        let values = [1.5, f32::NAN, -0.0, f32::INFINITY, f32::NEG_INFINITY, -f32::NAN];
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_ne_bytes()).collect();
        let mut out = vec![9; bytes.len()];
        write_finite(&bytes, &mut out);
        let found: Vec<f32> = out.as_chunks().0.iter().map(|v| f32::from_ne_bytes(*v)).collect();
        assert_eq!(found, [1.5, 0.0, -0.0, f32::MAX, f32::MIN, 0.0]);
        let mut out = vec![9; values.len()];
        write_is_number(&bytes, &mut out);
        assert_eq!(out, [1, 0, 1, 1, 1, 0]);
    }
}
