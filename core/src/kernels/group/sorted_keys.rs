use arrow::array::{Array, UInt64Array};
use arrow::compute::take;

use super::key_codes::comparable_keys;
use crate::array::{ListAxis, RaggedArray, lists_like};
use crate::error::{Error, Result};
use crate::kernels::canonical::canonical_floats;
use crate::kernels::sort::{Order, argsort_leaves, make_equality};

/// The leaves of every list of keys, sorted and divided into groups of equal keys.
pub(super) struct SortedKeys<'a> {
    given: &'a RaggedArray,
    order: UInt64Array,
    counts: Vec<usize>,
    sizes: Vec<usize>,
}

impl<'a> SortedKeys<'a> {
    pub(super) fn from_keys(given: &'a RaggedArray) -> Result<Self> {
        let Some(level) = given.axes().last() else {
            return Err(Error::invalid(
                "the keys to group by have no lists; nest them in lists first",
            ));
        };
        let (layout, keys) = (level.layout(), comparable_keys(given.leaves())?);
        let order = argsort_leaves(&keys, layout, Order::ASCENDING)?;
        let same = make_equality(&keys)?;
        let nulls = keys.logical_nulls().filter(|n| n.null_count() > 0);
        let equal = |a: u64, b: u64| {
            let (Ok(a), Ok(b)) = (usize::try_from(a), usize::try_from(b)) else { return false };
            match &nulls {
                Some(nulls) if nulls.is_null(a) || nulls.is_null(b) => {
                    nulls.is_null(a) && nulls.is_null(b)
                }
                _ => same(a, b),
            }
        };
        let mut sizes = Vec::new();
        let mut counts = Vec::with_capacity(layout.lists());
        for list in 0..layout.lists() {
            let before = sizes.len();
            let sorted = &order.values()[layout.range(list)];
            let mut size = 0;
            for (i, leaf) in sorted.iter().enumerate() {
                size += 1;
                if sorted.get(i + 1).is_none_or(|next| !equal(*leaf, *next)) {
                    sizes.push(std::mem::take(&mut size));
                }
            }
            counts.push(sizes.len() - before);
        }
        Ok(Self { given, order, counts, sizes })
    }

    /// Returns the indices of the leaves, ordered by list, and within a list by group.
    pub(super) fn leaf_order(&self) -> &UInt64Array {
        &self.order
    }

    pub(super) fn group_counts(&self) -> &[usize] {
        &self.counts
    }

    pub(super) fn group_sizes(&self) -> &[usize] {
        &self.sizes
    }

    pub(super) fn keys(&self) -> Result<RaggedArray> {
        let mut start = 0;
        let firsts = self.sizes.iter().map(|size| {
            let first = self.order.values()[start];
            start += size;
            first
        });
        let firsts: UInt64Array = firsts.collect();
        let leaves = canonical_floats(&take(self.given.leaves(), &firsts, None)?)?;
        let mut axes = self.given.axes().to_vec();
        if let Some(level) = axes.last_mut() {
            let layout = lists_like(level.layout(), self.counts.iter().copied())?;
            *level = ListAxis::try_new(layout, level.nulls().cloned())?;
        }
        RaggedArray::try_new(self.given.len(), axes, leaves)
    }
}
