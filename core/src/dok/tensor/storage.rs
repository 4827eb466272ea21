//! The stored tensor that views share: its shape, and a hash map from row-major indices (places) to
//! values.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::dense::{DType, DenseTensor};
use crate::dok::{MapOptions, RowMap, RowType};
use crate::error::{Error, Result};

pub(super) fn count_elements(shape: &[usize]) -> Result<u64> {
    if shape.contains(&0) {
        return Ok(0);
    }
    let size = shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d as u64));
    size.filter(|n| *n <= 1 << 63).ok_or_else(|| {
        Error::invalid(format!(
            "a tensor of shape {shape:?} has more than 2^63 elements; use a smaller shape"
        ))
    })
}

pub(crate) fn check_size(shape: &[usize]) -> Result<()> {
    count_elements(shape).map(drop)
}

/// Returns the row-major strides of a shape; the strides of a shape without elements have no
/// meaning.
pub(super) fn compute_strides(shape: &[usize]) -> Vec<u64> {
    let mut strides = vec![1u64; shape.len()];
    for i in (1..shape.len()).rev() {
        strides[i - 1] = strides[i].saturating_mul(shape[i] as u64);
    }
    strides
}

#[inline(always)]
pub(super) fn to_place(linear: u64) -> i64 {
    #[expect(clippy::cast_possible_wrap, reason = "places are below 2^63")]
    let place = linear as i64;
    place
}

#[inline(always)]
pub(super) fn from_place(place: i64) -> u64 {
    #[expect(clippy::cast_sign_loss, reason = "places are not negative")]
    let linear = place as u64;
    linear
}

/// Converts a coordinate to `usize`. It fits, because it is less than the size of its axis.
#[inline(always)]
pub(super) fn to_coordinate(n: u64) -> usize {
    #[expect(clippy::cast_possible_truncation, reason = "sizes of axes are usize")]
    let n = n as usize;
    n
}

/// Splits a row-major index into coordinates, first axis first.
#[inline(always)]
pub(super) fn unravel_place(mut linear: u64, strides: &[u64], out: &mut [u64]) {
    for (coordinate, stride) in out.iter_mut().zip(strides) {
        *coordinate = linear / stride;
        linear -= *coordinate * stride;
    }
}

#[derive(Debug)]
pub(super) struct DokStorage {
    pub(super) shape: Vec<usize>,
    pub(super) strides: Vec<u64>,
    pub(super) map: RowMap,
}

impl DokStorage {
    pub(super) fn new(shape: Vec<usize>, dtype: DType, options: MapOptions) -> Result<Self> {
        count_elements(&shape)?;
        let key = RowType::scalar(DType::I64);
        let map = RowMap::with_types(key, RowType::scalar(dtype), options)?;
        Ok(Self { strides: compute_strides(&shape), shape, map })
    }

    /// Creates storage with entries at row-major indices; the last value of a repeated index wins.
    pub(super) fn from_slots(
        shape: Vec<usize>,
        places: Vec<i64>,
        values: &DenseTensor,
        options: MapOptions,
    ) -> Result<Self> {
        count_elements(&shape)?;
        let keys = DenseTensor::from_vec([places.len()], places)?;
        let map = RowMap::from_rows(&keys, values, options)?;
        Ok(Self { strides: compute_strides(&shape), shape, map })
    }

    pub(super) fn dtype(&self) -> DType {
        self.map.value_type().map_or(DType::F32, RowType::dtype)
    }
}

/// A stored tensor in a lock: a write through one view excludes reads and writes through all other
/// views.
#[derive(Debug)]
pub(super) struct SharedStorage(RwLock<DokStorage>);

impl SharedStorage {
    pub(super) fn new(storage: DokStorage) -> Self {
        Self(RwLock::new(storage))
    }

    pub(super) fn read(&self) -> RwLockReadGuard<'_, DokStorage> {
        // A failed operation leaves the map consistent, so ignore that a panic poisoned the lock.
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, DokStorage> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}
