//! Which leaves become one value.

use arrow::array::{Array, ArrayRef, OffsetSizeTrait, UInt64Array};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::take;

use super::fold::Fold;
use super::outer::Overlay;
use super::segments::{self, Folded};
use crate::array::{Layout, ListAxis};
use crate::error::Result;
use crate::kernels::bits::Rank;
use crate::kernels::flags::{Question, flags};
use crate::with_offsets;

/// Which leaves become one value.
pub(super) enum Groups {
    /// Those of each list of the innermost axis.
    Lists(ListAxis),
    /// Those of one place in the result.
    Overlay(Overlay),
}

impl Groups {
    /// Number of results.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Lists(level) => level.layout().lists(),
            Self::Overlay(overlay) => overlay.len(),
        }
    }

    /// The state of every group, null leaves left out.
    pub(super) fn fold<F: Fold>(
        &self,
        flat: &[F::In],
        valid: Option<&Rank>,
    ) -> Result<Vec<F::Acc>> {
        self.fold_to::<F, _>(flat, valid, std::convert::identity)
    }

    /// What `finish` makes of the state of every group.
    pub(super) fn fold_to<F: Fold, R: Copy + Default>(
        &self,
        flat: &[F::In],
        valid: Option<&Rank>,
        finish: impl Fn(F::Acc) -> R,
    ) -> Result<Vec<R>> {
        match self {
            Self::Lists(level) => {
                let finish = |acc, _| finish(acc);
                Ok(segments::fold::<F, R, false>(flat, valid, level.layout(), finish)?.values)
            }
            Self::Overlay(overlay) => overlay.fold::<F, R>(flat, valid, finish),
        }
    }

    /// What `finish` makes of the state of every group, and of how many leaves are in it; groups without are
    /// null, whatever it makes of nothing.
    pub(super) fn fold_counted<F: Fold, R: Copy + Default>(
        &self,
        flat: &[F::In],
        valid: Option<&Rank>,
        finish: impl Fn(F::Acc, usize) -> R,
    ) -> Result<(Vec<R>, Option<NullBuffer>)> {
        let each = |acc, n| {
            let value = finish(acc, n);
            if n > 0 { value } else { R::default() }
        };
        let Folded { values, there } = match self {
            Self::Lists(level) => segments::fold::<F, R, true>(flat, valid, level.layout(), each)?,
            Self::Overlay(overlay) => overlay.fold_counted::<F, R>(flat, valid, each)?,
        };
        let there = there.contains(&0).then(|| NullBuffer::new(flags(&there, IsThere)));
        Ok((values, NullBuffer::union(self.nulls(), there.as_ref())))
    }

    /// How many leaves every group has, null ones left out.
    pub(super) fn counts(&self, valid: Option<&Rank>) -> Vec<usize> {
        match self {
            Self::Lists(level) => counts_of_lists(level.layout(), valid),
            Self::Overlay(overlay) => overlay.counts(valid),
        }
    }

    /// Which results exist: null lists have none.
    pub(super) fn nulls(&self) -> Option<&NullBuffer> {
        match self {
            Self::Lists(level) => level.nulls(),
            Self::Overlay(_) => None,
        }
    }

    /// Which results exist when groups without a leaf have none.
    pub(super) fn nulls_where(&self, found: impl Fn(usize) -> bool) -> Option<NullBuffer> {
        let found = NullBuffer::new(BooleanBuffer::collect_bool(self.len(), found));
        let found = if found.null_count() > 0 { Some(found) } else { None };
        NullBuffer::union(self.nulls(), found.as_ref())
    }

    /// The same groups as contiguous leaves.
    pub(super) fn gathered(&self, leaves: &ArrayRef) -> Result<InLists> {
        Ok(match self {
            Self::Lists(level) => {
                InLists { leaves: leaves.clone(), lists: level.clone(), order: None, along: None }
            }
            Self::Overlay(overlay) => {
                let gathered = overlay.gathered()?;
                InLists {
                    leaves: take(leaves, &gathered.order, None)?,
                    lists: gathered.lists,
                    order: Some(gathered.order),
                    along: Some(gathered.along),
                }
            }
        })
    }
}

/// Of a byte that says whether something is there.
#[derive(Clone, Copy)]
struct IsThere;

impl Question<u8> for IsThere {
    #[inline(always)]
    fn holds(self, byte: u8) -> bool {
        byte > 0
    }
}

/// Groups of contiguous leaves.
pub(super) struct InLists {
    pub(super) leaves: ArrayRef,
    pub(super) lists: ListAxis,
    /// Where these leaves stood before; `None` when they stand where they stood.
    order: Option<UInt64Array>,
    /// The position of each leaf along the reduced axis; `None` when it is that in its list.
    along: Option<Vec<usize>>,
}

impl InLists {
    /// Where a leaf stood before.
    pub(super) fn before(&self, leaf: usize) -> u64 {
        self.order.as_ref().map_or(leaf as u64, |order| order.value(leaf))
    }

    /// The position along the reduced axis of a leaf of the list that begins at `start`.
    pub(super) fn position(&self, start: usize, leaf: usize) -> usize {
        self.along.as_ref().map_or(leaf - start, |along| along[leaf])
    }

    /// Counts of leaves that are not null.
    pub(super) fn valid(&self) -> Option<NullBuffer> {
        self.leaves.logical_nulls().filter(|n| n.null_count() > 0)
    }
}

/// How many leaves of every list are not null.
pub(super) fn counts_of_lists(layout: &Layout, valid: Option<&Rank>) -> Vec<usize> {
    fn set<O: OffsetSizeTrait>(offsets: &[O], valid: &Rank) -> Vec<usize> {
        valid.ranks(offsets).windows(2).map(|pair| (pair[1] - pair[0]).as_usize()).collect()
    }
    match (valid, layout) {
        (None, Layout::Uniform { size, lists }) => vec![*size; *lists],
        (None, Layout::Ragged(offsets)) => offsets.lengths().collect(),
        (Some(valid), Layout::Ragged(offsets)) => with_offsets!(offsets, o => set(o, valid)),
        (Some(valid), Layout::Uniform { size, lists }) => {
            (0..*lists).map(|i| valid.rank((i + 1) * size) - valid.rank(i * size)).collect()
        }
    }
}
