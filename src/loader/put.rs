//! What is written into the places of one list: values as they are, made finite, or whether they are
//! numbers.

use super::grid::Put;

/// Values of one item, elements of `N` bytes.
pub(super) struct Copied<'a, const N: usize> {
    pub(super) values: &'a [u8],
    /// What the first of them is called in the batch.
    pub(super) first: usize,
}

impl<const N: usize> Put for Copied<'_, N> {
    #[inline]
    fn put(&mut self, first: usize, cell: &mut [u8]) {
        let at = (first - self.first) * N;
        cell.copy_from_slice(&self.values[at..at + cell.len()]);
    }
}

/// float32 values of one item, as finite numbers.
pub(super) struct Finite<'a> {
    pub(super) values: &'a [u8],
    pub(super) first: usize,
}

impl Put for Finite<'_> {
    #[inline]
    fn put(&mut self, first: usize, cell: &mut [u8]) {
        let at = (first - self.first) * 4;
        finite(&self.values[at..at + cell.len()], cell);
    }
}

/// Whether float32 values of one item are numbers.
pub(super) struct Numbers<'a> {
    pub(super) values: &'a [u8],
    pub(super) first: usize,
}

impl Put for Numbers<'_> {
    #[inline]
    fn put(&mut self, first: usize, cell: &mut [u8]) {
        let at = (first - self.first) * 4;
        numbers(&self.values[at..at + cell.len() * 4], cell);
    }
}

/// There is something.
pub(super) struct Ones;

impl Put for Ones {
    #[inline]
    fn put(&mut self, _: usize, cell: &mut [u8]) {
        cell.fill(1);
    }
}

/// Native float32 with 0 for NaN and the largest numbers for infinities.
#[inline]
pub(super) fn finite(values: &[u8], out: &mut [u8]) {
    for (value, out) in values.as_chunks::<4>().0.iter().zip(out.as_chunks_mut().0) {
        let value = f32::from_ne_bytes(*value);
        let finite = if value.is_nan() { 0.0 } else { value.clamp(f32::MIN, f32::MAX) };
        *out = finite.to_ne_bytes();
    }
}

/// One byte per native float32: 1 where it is not NaN.
#[inline]
pub(super) fn numbers(values: &[u8], out: &mut [u8]) {
    for (value, out) in values.as_chunks::<4>().0.iter().zip(out) {
        *out = u8::from(!f32::from_ne_bytes(*value).is_nan());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_is_zero_and_said_so() {
        let values = [1.5, f32::NAN, -0.0, f32::INFINITY, f32::NEG_INFINITY, -f32::NAN];
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_ne_bytes()).collect();
        let mut out = vec![9; bytes.len()];
        finite(&bytes, &mut out);
        let found: Vec<f32> = out.as_chunks().0.iter().map(|v| f32::from_ne_bytes(*v)).collect();
        assert_eq!(found, [1.5, 0.0, -0.0, f32::MAX, f32::MIN, 0.0]);
        let mut out = vec![9; values.len()];
        numbers(&bytes, &mut out);
        assert_eq!(out, [1, 0, 1, 1, 1, 0]);
    }
}
