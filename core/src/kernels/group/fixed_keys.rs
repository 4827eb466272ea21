use arrow::array::{Array, AsArray, UInt64Array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::Int64Type;

use super::sorted_keys::SortedKeys;
use super::{check_levels, stack_levels};
use crate::array::{ListAxis, RaggedArray, make_lists_like};
use crate::error::{Error, Result};
use crate::kernels::align::share_lists;
use crate::kernels::gather::take_rows;
use crate::kernels::search::{SearchSide, searchsorted_lists};
use crate::limit::check_size;

/// Groups the elements of every list by the keys in `wanted`: one list per wanted key, in the order
/// of `wanted`, empty if no element has the key.
///
/// Elements with other keys are dropped.
///
/// `wanted` has one list for every list of `keys`. If `wanted` has fewer levels of lists, each of
/// its lists applies to all innermost lists of `keys` within the outer list at the same position.
/// Keys compare as in [`searchsorted`](crate::kernels::search::searchsorted), but null matches
/// null. A list that is null in any of the three arrays is null.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{AsArray, Int32Array, types::Int32Type};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::group::group_on;
/// // [[10, 20, 30]] by [[1, 3, 1]], for the keys 1, 2 and 3
/// let lists = |n, leaves: Vec<i32>| -> serrate::Result<_> {
///     let axes = vec![Offsets::from_lengths([n])?.into()];
///     RaggedArray::try_new(1, axes, Arc::new(Int32Array::from(leaves)))
/// };
/// let (values, keys) = (lists(3, vec![10, 20, 30])?, lists(3, vec![1, 3, 1])?);
/// let found = group_on(&values, &keys, &lists(3, vec![1, 2, 3])?)?;
/// assert_eq!(found.lengths(2)?, [2, 0, 1]);
/// assert_eq!(found.leaves().as_primitive::<Int32Type>().values(), &[10, 30, 20]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// Same as [`group`](super::group); also when `wanted` has no lists or more levels than `keys`, an
/// outer list of `wanted` differs in length from the corresponding list of `keys`, or the types of
/// `wanted` and `keys` cannot be compared.
pub fn group_on(
    array: &RaggedArray,
    keys: &RaggedArray,
    wanted: &RaggedArray,
) -> Result<RaggedArray> {
    let axis = check_levels(array, keys)?;
    let given = wanted.axes().len();
    if given == 0 || given > axis {
        return Err(Error::invalid(format!(
            "the wanted keys have {given} level(s) of lists, but the keys to group by have {axis}; the wanted keys need at least one level, and no more than the keys to group by"
        )));
    }
    let (_, keys) = share_lists(array, keys, axis)?;
    let (keys, wanted) = share_lists(&keys, wanted, given - 1)?;
    let (array, keys) = share_lists(array, &keys, axis)?;
    let wanted = repeat_lists_below(&wanted, &keys)?;
    let sorted = SortedKeys::from_keys(&keys)?;
    let (level, list_of_keys) = (array.axis(axis)?, wanted.axis(axis)?);
    let nulls = NullBuffer::union(level.nulls(), list_of_keys.nulls());
    let (chosen, lengths) = choose_groups(&sorted.keys()?, &wanted, axis, nulls.as_ref())?;
    let starts: Vec<usize> = std::iter::once(0)
        .chain(sorted.group_sizes().iter().scan(0, |end, size| {
            *end += size;
            Some(*end)
        }))
        .collect();
    let size = |group: &Option<usize>| group.map_or(0, |g| sorted.group_sizes()[g]);
    let total = chosen.iter().map(size).fold(0, usize::saturating_add);
    check_size("grouping on given keys", total, u64::BITS as usize)?;
    let order = chosen
        .iter()
        .flatten()
        .flat_map(|g| sorted.leaf_order().values()[starts[*g]..starts[*g + 1]].iter().copied());
    let order = UInt64Array::from_iter_values(order);
    let layout = match nulls {
        Some(_) => make_lists_like(list_of_keys.layout(), lengths)?,
        None => list_of_keys.layout().clone(),
    };
    let groups = ListAxis::try_new(layout, nulls.clone())?;
    let members = make_lists_like(level.layout(), chosen.iter().map(size))?.into();
    let below = take_rows(&array.inner(axis)?, &order)?;
    stack_levels(&array, axis, groups, members, below)
}

/// Returns the group of each wanted key, an element of `found` or `None`, and the number of wanted
/// keys in each list. `found` has the distinct keys of each list in ascending order. The lists in
/// `nulls` have no groups.
fn choose_groups(
    found: &RaggedArray,
    wanted: &RaggedArray,
    axis: usize,
    nulls: Option<&NullBuffer>,
) -> Result<(Vec<Option<usize>>, Vec<usize>)> {
    let left = searchsorted_lists(found, wanted, SearchSide::Left)?;
    let right = searchsorted_lists(found, wanted, SearchSide::Right)?;
    let (left, right) = (left.leaves().as_primitive::<Int64Type>(), right.leaves());
    let right = right.as_primitive::<Int64Type>();
    let (groups, list_of_keys) = (found.axis(axis)?.layout(), wanted.axis(axis)?);
    let found_nulls = found.leaves().logical_nulls();
    let wanted_nulls = wanted.leaves().logical_nulls();
    let mut chosen = Vec::new();
    let mut lengths = Vec::with_capacity(groups.lists());
    for list in 0..groups.lists() {
        if nulls.is_some_and(|n| n.is_null(list)) {
            lengths.push(0);
            continue;
        }
        let (groups, needles) = (groups.range(list), list_of_keys.layout().range(list));
        lengths.push(needles.len());
        for needle in needles {
            // Null keys sort last, so the elements with a null key form the last group of a list.
            let last_null = || {
                let last = groups.clone().next_back()?;
                found_nulls.as_ref().is_some_and(|n| n.is_null(last)).then_some(last)
            };
            chosen.push(match wanted_nulls.as_ref().is_some_and(|n| n.is_null(needle)) {
                true => last_null(),
                false if left.is_valid(needle) && left.value(needle) < right.value(needle) => {
                    usize::try_from(left.value(needle)).ok().map(|at| groups.start + at)
                }
                false => None,
            });
        }
    }
    Ok((chosen, lengths))
}

/// Repeats list `i` of `wanted` for all innermost lists of `keys` in the outer list `i`.
fn repeat_lists_below(wanted: &RaggedArray, keys: &RaggedArray) -> Result<RaggedArray> {
    let (given, axis) = (wanted.axes().len(), keys.axes().len());
    if given == axis {
        return Ok(wanted.clone());
    }
    let mut owners: Vec<u64> = (0..wanted.axis_len(given - 1)? as u64).collect();
    for level in &keys.axes()[given - 1..axis - 1] {
        let layout = level.layout();
        let mut below = Vec::with_capacity(layout.children());
        for (list, owner) in owners.iter().enumerate() {
            below.resize(below.len() + layout.length(list), *owner);
        }
        owners = below;
    }
    let lists = take_rows(&wanted.inner(given - 1)?, &UInt64Array::from(owners))?;
    let (_, levels, leaves) = lists.into_parts();
    let mut axes = keys.axes()[..axis - 1].to_vec();
    axes.extend(levels);
    RaggedArray::try_new(keys.len(), axes, leaves)
}
