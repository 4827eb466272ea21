//! What views share: the shape as it was made, and the entries by their place.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::dense::{DType, DenseTensor};
use crate::dok::{HashMap, MapOptions, RowType};
use crate::error::{Error, Result};

/// Elements of a shape, at most 2^63, so that every place is an int64.
pub(super) fn linear_size(shape: &[usize]) -> Result<u64> {
    if shape.contains(&0) {
        return Ok(0);
    }
    let size = shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d as u64));
    size.filter(|n| *n <= 1 << 63).ok_or_else(|| {
        Error::invalid(format!("a tensor of shape {shape:?} has more than 2^63 elements"))
    })
}

/// Refuses shapes with more than 2^63 elements.
pub(crate) fn check_size(shape: &[usize]) -> Result<()> {
    linear_size(shape).map(drop)
}

/// Places between neighbours along every axis. Of a shape without elements they mean nothing.
pub(super) fn strides(shape: &[usize]) -> Vec<u64> {
    let mut strides = vec![1u64; shape.len()];
    for i in (1..shape.len()).rev() {
        strides[i - 1] = strides[i].saturating_mul(shape[i] as u64);
    }
    strides
}

/// A place as an int64, which it is: no tensor has more than 2^63.
#[inline(always)]
pub(super) fn place(linear: u64) -> i64 {
    #[expect(clippy::cast_possible_wrap, reason = "places are below 2^63")]
    let place = linear as i64;
    place
}

/// The other way round.
#[inline(always)]
pub(super) fn linear(place: i64) -> u64 {
    #[expect(clippy::cast_sign_loss, reason = "places are not negative")]
    let linear = place as u64;
    linear
}

/// A coordinate: smaller than the size of its axis.
#[inline(always)]
pub(super) fn coordinate(n: u64) -> usize {
    #[expect(clippy::cast_possible_truncation, reason = "sizes of axes are usize")]
    let n = n as usize;
    n
}

/// Divides a place into coordinates, axis by axis, the first first.
#[inline(always)]
pub(super) fn unravel(mut linear: u64, strides: &[u64], out: &mut [u64]) {
    for (coordinate, stride) in out.iter_mut().zip(strides) {
        *coordinate = linear / stride;
        linear -= *coordinate * stride;
    }
}

#[derive(Debug)]
pub(super) struct Storage {
    pub(super) shape: Vec<usize>,
    pub(super) strides: Vec<u64>,
    /// From place to value.
    pub(super) map: HashMap,
}

impl Storage {
    /// Without entries.
    pub(super) fn new(shape: Vec<usize>, dtype: DType, options: MapOptions) -> Result<Self> {
        linear_size(&shape)?;
        let key = RowType::scalar(DType::I64);
        let map = HashMap::with_types(key, RowType::scalar(dtype), options)?;
        Ok(Self { strides: strides(&shape), shape, map })
    }

    /// With entries at these places, which are of the shape; of duplicates the last counts.
    pub(super) fn with_entries(
        shape: Vec<usize>,
        places: Vec<i64>,
        values: &DenseTensor,
        options: MapOptions,
    ) -> Result<Self> {
        linear_size(&shape)?;
        let keys = DenseTensor::from_vec([places.len()], places)?;
        let map = HashMap::from_rows(&keys, values, options)?;
        Ok(Self { strides: strides(&shape), shape, map })
    }

    pub(super) fn dtype(&self) -> DType {
        self.map.value_type().map_or(DType::F32, RowType::dtype)
    }
}

/// Storage behind a lock: whoever writes through one view is alone.
#[derive(Debug)]
pub(super) struct Shared(RwLock<Storage>);

impl Shared {
    pub(super) fn new(storage: Storage) -> Self {
        Self(RwLock::new(storage))
    }

    pub(super) fn read(&self) -> RwLockReadGuard<'_, Storage> {
        // A batch that failed leaves a map that is whole.
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, Storage> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}
