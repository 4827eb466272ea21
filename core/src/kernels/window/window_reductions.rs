use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, UInt64Array};
use arrow::buffer::BooleanBuffer;
use arrow::compute::{cast, take};
use arrow::datatypes::DataType;

use super::list_windows::{ListWindows, count_set};
use super::quantiles::compute_window_quantiles;
use super::window_extremes::find_extremes;
use super::window_sums::WindowSums;
use crate::array::canonical::to_canonical_floats;
use crate::array::nulls::find_validity;
use crate::error::{Error, Result};
use crate::kernels::bits::RankedBitmap;
use crate::kernels::reduce::Reduction;
use crate::kernels::reduce::quantile::check_quantile;

impl ListWindows {
    pub(super) fn reduce_leaves(&self, leaves: &ArrayRef, how: Reduction) -> Result<ArrayRef> {
        let out = how.output_type(leaves.data_type())?;
        let unpacked = match (how, leaves.data_type()) {
            (Reduction::First | Reduction::Last | Reduction::Count, _) => None,
            (_, DataType::Dictionary(_, values)) => Some(cast(leaves, values)?),
            _ => None,
        };
        let leaves = unpacked.as_ref().unwrap_or(leaves);
        let found = match how {
            Reduction::Count => self.count(leaves)?,
            Reduction::Any | Reduction::All => self.test_leaves(leaves, how == Reduction::Any)?,
            Reduction::Sum => WindowSums::new(self, leaves).compute_window_sums(&out)?,
            Reduction::Mean => WindowSums::new(self, leaves).compute_window_means(&out)?,
            Reduction::Min | Reduction::Max => {
                let chosen = find_extremes(self, leaves, how == Reduction::Max)?;
                to_canonical_floats(&self.take_leaves(leaves, chosen)?)?
            }
            Reduction::First | Reduction::Last => {
                self.take_leaves(leaves, self.find_end_leaves(leaves, how == Reduction::Last))?
            }
            Reduction::Median => compute_window_quantiles(self, leaves, 0.5)?,
            other => {
                return Err(Error::invalid(format!(
                    "the reduction {} cannot be computed over windows directly; build the windows as lists, then reduce the lists",
                    other.name()
                )));
            }
        };
        Ok(if *found.data_type() == out { found } else { cast(&found, &out)? })
    }

    pub(super) fn compute_leaf_quantiles(&self, leaves: &ArrayRef, q: f64) -> Result<ArrayRef> {
        check_quantile(q)?;
        let out = Reduction::Median.output_type(leaves.data_type())?;
        let unpacked = match leaves.data_type() {
            DataType::Dictionary(_, values) => Some(cast(leaves, values)?),
            _ => None,
        };
        let found = compute_window_quantiles(self, unpacked.as_ref().unwrap_or(leaves), q)?;
        Ok(if *found.data_type() == out { found } else { cast(&found, &out)? })
    }

    fn count(&self, leaves: &ArrayRef) -> Result<ArrayRef> {
        let counts = self.count_values(find_validity(leaves).as_ref());
        let counts = counts.into_iter().map(|n| i64::try_from(n).unwrap_or(i64::MAX));
        Ok(Arc::new(Int64Array::try_new(counts.collect(), self.nulls.clone())?))
    }

    /// Returns, for each window, whether any leaf (if `any` is set) or every leaf is true. Ignores
    /// null leaves. A null window gives null.
    fn test_leaves(&self, leaves: &ArrayRef, any: bool) -> Result<ArrayRef> {
        let booleans = cast(leaves, &DataType::Boolean)?;
        let booleans = booleans.as_boolean();
        let wanted = if any { booleans.values().clone() } else { !booleans.values() };
        let wanted = match booleans.nulls() {
            Some(nulls) => &wanted & nulls.inner(),
            None => wanted,
        };
        let rank = RankedBitmap::new(&wanted);
        let found =
            BooleanBuffer::from_iter(self.ranges.iter().map(|r| (count_set(&rank, r) > 0) == any));
        Ok(Arc::new(BooleanArray::new(found, self.nulls.clone())))
    }

    fn find_end_leaves(&self, leaves: &ArrayRef, last: bool) -> Vec<Option<usize>> {
        let Some(nulls) = find_validity(leaves) else {
            let end = |r: &Range<usize>| if last { r.end - 1 } else { r.start };
            return self.ranges.iter().map(|r| (!r.is_empty()).then(|| end(r))).collect();
        };
        // For each leaf, the nearest valid leaf at or before it if `last` is set; otherwise at or
        // after it.
        let mut nearest = vec![None; leaves.len()];
        let mut found = None;
        let mut visit = |i: usize| {
            if nulls.is_valid(i) {
                found = Some(i);
            }
            nearest[i] = found;
        };
        match last {
            true => (0..leaves.len()).for_each(&mut visit),
            false => (0..leaves.len()).rev().for_each(&mut visit),
        }
        let end = |r: &Range<usize>| {
            if r.is_empty() {
                return None;
            }
            let leaf = nearest[if last { r.end - 1 } else { r.start }];
            leaf.filter(|leaf| r.contains(leaf))
        };
        self.ranges.iter().map(end).collect()
    }

    /// Takes the leaf at index `chosen[i]` for each window `i`; null if `chosen[i]` is `None` or
    /// the window is null.
    fn take_leaves(&self, leaves: &ArrayRef, chosen: Vec<Option<usize>>) -> Result<ArrayRef> {
        let chosen = chosen.into_iter().enumerate();
        let chosen: UInt64Array = chosen
            .map(|(window, leaf)| leaf.filter(|_| !self.is_null(window)).map(|leaf| leaf as u64))
            .collect();
        Ok(take(leaves, &chosen, None)?)
    }
}
