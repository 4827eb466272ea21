//! Broadcasting of shapes by NumPy's rules, and row-major strides.

use crate::error::Result;

pub(crate) fn derive_strides(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1usize; shape.len()];
    for i in (1..shape.len()).rev() {
        // The product saturates only if an axis has size 0; then the array has no elements, and the
        // strides are never used.
        strides[i - 1] = strides[i].saturating_mul(shape[i]);
    }
    strides
}

/// Returns the shape to which two shapes broadcast, aligned at the last axis: `[3, 1]` and `[4]`
/// give `[3, 4]`. Returns `None` if two sizes differ and neither is 1.
pub(crate) fn broadcast_shapes(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let ndim = a.len().max(b.len());
    let size = |s: &[usize], i: usize| (i + s.len()).checked_sub(ndim).map_or(1, |i| s[i]);
    (0..ndim)
        .map(|i| match (size(a, i), size(b, i)) {
            (x, y) if x == y => Some(x),
            (1, y) => Some(y),
            (x, 1) => Some(x),
            _ => None,
        })
        .collect()
}

/// Returns the strides with which an array of shape `from` is read as if it had the shape `to`. The
/// stride is 0 on axes that repeat: `[3, 1]` read as `[3, 4]` has the strides `[1, 0]`.
pub(crate) fn broadcast_strides(from: &[usize], to: &[usize]) -> Vec<usize> {
    let mut out = vec![0; to.len()];
    let missing = to.len().saturating_sub(from.len());
    for ((out, stride), size) in out[missing..].iter_mut().zip(derive_strides(from)).zip(from) {
        *out = if *size == 1 { 0 } else { stride };
    }
    out
}

/// Calls `each` with the flat index in `from` of each element of `to`, in row-major order.
pub(crate) fn for_each_broadcast(from: &[usize], to: &[usize], mut each: impl FnMut(usize)) {
    let _ = try_for_each_broadcast(from, to, |at| {
        each(at);
        Ok(())
    });
}

pub(crate) fn try_for_each_broadcast(
    from: &[usize],
    to: &[usize],
    mut each: impl FnMut(usize) -> Result<()>,
) -> Result<()> {
    if to.contains(&0) {
        return Ok(());
    }
    let strides = broadcast_strides(from, to);
    let mut counter = vec![0usize; to.len()];
    let mut at = 0;
    loop {
        each(at)?;
        let mut axis = to.len();
        loop {
            let Some(k) = axis.checked_sub(1) else { return Ok(()) };
            axis = k;
            counter[k] += 1;
            at += strides[k];
            if counter[k] < to[k] {
                break;
            }
            at -= strides[k] * to[k];
            counter[k] = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_broadcast() {
        assert_eq!(broadcast_shapes(&[2, 1], &[3]), Some(vec![2, 3]));
        assert_eq!(broadcast_shapes(&[], &[0, 1]), Some(vec![0, 1]));
        assert_eq!(broadcast_shapes(&[2], &[3]), None);
        let walk = |from: &[usize], to: &[usize]| {
            let mut positions = Vec::new();
            for_each_broadcast(from, to, |at| positions.push(at));
            positions
        };
        assert_eq!(walk(&[2, 1], &[3, 2, 2]), [0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1]);
        assert_eq!(walk(&[], &[3]), [0, 0, 0]);
        assert_eq!(walk(&[], &[]), [0]);
        assert!(walk(&[1, 3], &[0, 3]).is_empty());
    }
}
