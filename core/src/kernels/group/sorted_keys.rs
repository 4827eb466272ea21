use std::ops::Range;

use arrow::array::{Array, ArrayAccessor, ArrayRef, AsArray, UInt64Array};
use arrow::buffer::NullBuffer;
use arrow::compute::take;
use arrow::datatypes::DataType;

use super::key_codes::to_comparable_keys;
use super::list_groups::ListGroups;
use super::text_ranks::TextRanks;
use crate::array::canonical::to_canonical_floats;
use crate::array::nulls::find_validity;
use crate::array::{Layout, ListAxis, RaggedArray, make_lists_like};
use crate::error::{Error, Result};
use crate::kernels::sort::{SortOrder, argsort_leaves, for_each_list_of_keys, make_equality};

/// The leaves of every list of keys, sorted and divided into groups of equal keys.
pub(super) struct SortedKeys<'a> {
    given: &'a RaggedArray,
    order: UInt64Array,
    group_counts: Vec<usize>,
    group_sizes: Vec<usize>,
    is_moved: bool,
}

impl<'a> SortedKeys<'a> {
    pub(super) fn from_keys(given: &'a RaggedArray) -> Result<Self> {
        let Some(level) = given.axes().last() else {
            return Err(Error::invalid(
                "the keys to group by have no lists; nest them in lists first",
            ));
        };
        let ListGroups { order, group_counts, group_sizes, is_moved, .. } =
            group_leaves(&to_comparable_keys(given.leaves())?, level.layout())?;
        Ok(Self { given, order: order.into(), group_counts, group_sizes, is_moved })
    }

    /// If false, [`leaf_order`](Self::leaf_order) is 0, 1, 2, ..
    pub(super) fn is_moved(&self) -> bool {
        self.is_moved
    }

    /// Returns the indices of the leaves, ordered by list, and within a list by group.
    pub(super) fn leaf_order(&self) -> &UInt64Array {
        &self.order
    }

    pub(super) fn group_counts(&self) -> &[usize] {
        &self.group_counts
    }

    pub(super) fn group_sizes(&self) -> &[usize] {
        &self.group_sizes
    }

    pub(super) fn keys(&self) -> Result<RaggedArray> {
        let mut start = 0;
        let firsts = self.group_sizes.iter().map(|size| {
            let first = self.order.values()[start];
            start += size;
            first
        });
        let firsts: UInt64Array = firsts.collect();
        let leaves = to_canonical_floats(&take(self.given.leaves(), &firsts, None)?)?;
        let mut axes = self.given.axes().to_vec();
        if let Some(level) = axes.last_mut() {
            let layout = make_lists_like(level.layout(), self.group_counts.iter().copied())?;
            *level = ListAxis::try_new(layout, level.nulls().cloned())?;
        }
        RaggedArray::try_new(self.given.len(), axes, leaves)
    }
}

fn group_leaves(keys: &ArrayRef, layout: &Layout) -> Result<ListGroups> {
    let nulls = find_validity(keys);
    let nulls = nulls.as_ref();
    let mut groups = ListGroups::with_capacity(layout.lists(), layout.children());
    match keys.data_type() {
        DataType::Utf8 => group_texts(keys.as_string::<i32>(), nulls, layout, &mut groups),
        DataType::LargeUtf8 => group_texts(keys.as_string::<i64>(), nulls, layout, &mut groups),
        DataType::Utf8View => group_texts(keys.as_string_view(), nulls, layout, &mut groups),
        _ => {
            let mut push = |list: Range<usize>, keys: &[u64]| groups.push_list(list, keys, nulls);
            if !for_each_list_of_keys(keys, layout, &mut push)? {
                return group_by_comparison(keys, nulls, layout);
            }
        }
    }
    Ok(groups)
}

fn group_texts<'t>(
    texts: impl ArrayAccessor<Item = &'t str>,
    nulls: Option<&NullBuffer>,
    layout: &Layout,
    groups: &mut ListGroups,
) {
    let mut ranks = TextRanks::default();
    for list in (0..layout.lists()).map(|i| layout.range(i)) {
        let keys = ranks.rank_list(&texts, list.clone(), nulls);
        groups.push_list(list, keys, nulls);
    }
}

/// Groups keys by comparing them. Used for keys that are neither strings nor convertible to `u64`,
/// such as wide decimals.
fn group_by_comparison(
    keys: &ArrayRef,
    nulls: Option<&NullBuffer>,
    layout: &Layout,
) -> Result<ListGroups> {
    let order = argsort_leaves(keys, layout, SortOrder::ASCENDING)?;
    let same = make_equality(keys)?;
    let equal = |a: u64, b: u64| {
        let (Ok(a), Ok(b)) = (usize::try_from(a), usize::try_from(b)) else { return false };
        match nulls {
            Some(nulls) if nulls.is_null(a) || nulls.is_null(b) => {
                nulls.is_null(a) && nulls.is_null(b)
            }
            _ => same(a, b),
        }
    };
    let mut groups = ListGroups::default();
    for list in 0..layout.lists() {
        let before = groups.group_sizes.len();
        let sorted = &order.values()[layout.range(list)];
        groups.group_sizes.extend(sorted.chunk_by(|a, b| equal(*a, *b)).map(<[u64]>::len));
        groups.group_counts.push(groups.group_sizes.len() - before);
    }
    groups.is_moved = true;
    groups.order = order.values().to_vec();
    Ok(groups)
}
