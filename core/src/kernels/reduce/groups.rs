//! Divides leaves into the groups that a reduction along an axis combines.

use arrow::array::{Array, ArrayRef, OffsetSizeTrait, UInt64Array};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::take;

use super::fold::Fold;
use super::outer::StackedLists;
use super::segments::{self, FoldedLists};
use crate::array::nulls::find_validity;
use crate::array::{Layout, ListAxis};
use crate::error::Result;
use crate::kernels::bits::RankedBitmap;
use crate::kernels::flags::{ValuePredicate, collect_flags};
use crate::with_offsets;

pub(super) enum LeafGroups {
    Lists(ListAxis),
    /// For an outer axis, whose elements are lists: the leaves at the same index in these lists are
    /// a group. `[[a, b], [c]]` has the groups `a, c` and `b`.
    Stacked(StackedLists),
}

impl LeafGroups {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Lists(level) => level.layout().lists(),
            Self::Stacked(stacked) => stacked.len(),
        }
    }

    pub(super) fn fold<F: Fold>(
        &self,
        flat: &[F::Input],
        valid: Option<&RankedBitmap>,
    ) -> Result<Vec<F::Accumulator>> {
        self.fold_to::<F, _>(flat, valid, std::convert::identity)
    }

    pub(super) fn fold_to<F: Fold, R: Copy + Default>(
        &self,
        flat: &[F::Input],
        valid: Option<&RankedBitmap>,
        finish: impl Fn(F::Accumulator) -> R,
    ) -> Result<Vec<R>> {
        match self {
            Self::Lists(level) => {
                let finish = |acc, _| finish(acc);
                Ok(segments::fold_segments::<F, R, false>(flat, valid, level.layout(), finish)?
                    .values)
            }
            Self::Stacked(stacked) => stacked.fold::<F, R>(flat, valid, finish),
        }
    }

    /// Folds each group. `finish` gets the accumulator and the number of valid leaves of the group;
    /// if this number is 0, the result of the group is null.
    pub(super) fn fold_counted<F: Fold, R: Copy + Default>(
        &self,
        flat: &[F::Input],
        valid: Option<&RankedBitmap>,
        finish: impl Fn(F::Accumulator, usize) -> R,
    ) -> Result<(Vec<R>, Option<NullBuffer>)> {
        let each = |acc, n| {
            let value = finish(acc, n);
            if n > 0 { value } else { R::default() }
        };
        let FoldedLists { values, present } = match self {
            Self::Lists(level) => {
                segments::fold_segments::<F, R, true>(flat, valid, level.layout(), each)?
            }
            Self::Stacked(stacked) => stacked.fold_counted::<F, R>(flat, valid, each)?,
        };
        let present =
            present.contains(&0).then(|| NullBuffer::new(collect_flags(&present, IsNonzero)));
        Ok((values, NullBuffer::union(self.nulls(), present.as_ref())))
    }

    pub(super) fn count_group_values(&self, valid: Option<&RankedBitmap>) -> Vec<usize> {
        match self {
            Self::Lists(level) => compute_counts_of_lists(level.layout(), valid),
            Self::Stacked(stacked) => stacked.count_slot_values(valid),
        }
    }

    /// Returns the validity of the results: the result of a null list is null. Along an outer axis,
    /// no group is a null list.
    pub(super) fn nulls(&self) -> Option<&NullBuffer> {
        match self {
            Self::Lists(level) => level.nulls(),
            Self::Stacked(_) => None,
        }
    }

    /// Returns the validity of the results: a result is null if its group is a null list, or if
    /// `found` returns false for the index of its group.
    pub(super) fn find_nulls_where(&self, found: impl Fn(usize) -> bool) -> Option<NullBuffer> {
        let found = NullBuffer::new(BooleanBuffer::collect_bool(self.len(), found));
        let found = if found.null_count() > 0 { Some(found) } else { None };
        NullBuffer::union(self.nulls(), found.as_ref())
    }

    pub(super) fn gather_leaves(&self, leaves: &ArrayRef) -> Result<GroupLists> {
        Ok(match self {
            Self::Lists(level) => GroupLists {
                leaves: leaves.clone(),
                lists: level.clone(),
                order: None,
                along: None,
            },
            Self::Stacked(stacked) => {
                let gathered = stacked.gather_stacked()?;
                GroupLists {
                    leaves: take(leaves, &gathered.order, None)?,
                    lists: gathered.lists,
                    order: Some(gathered.order),
                    along: Some(gathered.along),
                }
            }
        })
    }
}

#[derive(Clone, Copy)]
struct IsNonzero;

impl ValuePredicate<u8> for IsNonzero {
    #[inline(always)]
    fn holds(self, byte: u8) -> bool {
        byte > 0
    }
}

pub(super) struct GroupLists {
    pub(super) leaves: ArrayRef,
    pub(super) lists: ListAxis,
    /// The original index of each leaf; `None` if the leaves were not reordered.
    order: Option<UInt64Array>,
    /// The index of each leaf along the reduced axis; `None` if this is the index of the leaf in
    /// its list.
    along: Option<Vec<usize>>,
}

impl GroupLists {
    pub(super) fn find_original_index(&self, leaf: usize) -> u64 {
        self.order.as_ref().map_or(leaf as u64, |order| order.value(leaf))
    }

    /// Returns the index of a leaf along the reduced axis. The list of the leaf begins at `start`.
    pub(super) fn locate_leaf(&self, start: usize, leaf: usize) -> usize {
        self.along.as_ref().map_or(leaf - start, |along| along[leaf])
    }

    pub(super) fn valid(&self) -> Option<NullBuffer> {
        find_validity(&self.leaves)
    }
}

pub(super) fn compute_counts_of_lists(layout: &Layout, valid: Option<&RankedBitmap>) -> Vec<usize> {
    fn count_ragged<O: OffsetSizeTrait>(offsets: &[O], valid: &RankedBitmap) -> Vec<usize> {
        valid
            .count_before_each(offsets)
            .windows(2)
            .map(|pair| (pair[1] - pair[0]).as_usize())
            .collect()
    }
    match (valid, layout) {
        (None, Layout::Uniform { size, lists }) => vec![*size; *lists],
        (None, Layout::Ragged(offsets)) => offsets.lengths().collect(),
        (Some(valid), Layout::Ragged(offsets)) => {
            with_offsets!(offsets, o => count_ragged(o, valid))
        }
        (Some(valid), Layout::Uniform { size, lists }) => (0..*lists)
            .map(|i| valid.count_before((i + 1) * size) - valid.count_before(i * size))
            .collect(),
    }
}

pub(super) fn rank_valid(leaves: &ArrayRef) -> Option<RankedBitmap> {
    leaves.nulls().filter(|n| n.null_count() > 0).map(|n| RankedBitmap::new(n.inner()))
}
