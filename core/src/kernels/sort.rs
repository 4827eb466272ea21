//! Sorts the leaves of each list, and finds their order, ranks and distinct values.
//!
//! Sorting is stable in both directions. 0.0 and -0.0 are equal, and all NaN are equal. NaN is
//! greater than any number, as in the SQL of this crate: it is last in ascending order, first in
//! descending order.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, Int64Array, PrimitiveArray, UInt64Array,
    make_comparator,
};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::{SortOptions, cast, take};
use arrow::datatypes::DataType;

use super::align::share_lists;
use super::gather::{replace_axis, take_rows};
use super::native::{dispatch_native, reinterpret_values};
use crate::array::nulls::find_validity;
use crate::array::{Layout, ListAxis, RaggedArray, make_lists_like};
use crate::error::{Error, Result};

/// Sort order.
///
/// The default is ascending with nulls last, as in DuckDB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SortOrder {
    /// Sorts in descending order.
    pub descending: bool,
    /// Sorts nulls before all values instead of after them.
    pub nulls_first: bool,
}

impl SortOrder {
    /// Smallest first, nulls last.
    pub const ASCENDING: Self = Self { descending: false, nulls_first: false };
    /// Largest first, nulls last.
    pub const DESCENDING: Self = Self { descending: true, nulls_first: false };
}

/// Sorts the leaves of every innermost list.
///
/// The result shares the lists of the array.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{Array, Int32Array};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::sort::{SortOrder, sort};
/// // [[3, NULL, 1], [2]]
/// let leaves = Arc::new(Int32Array::from(vec![Some(3), None, Some(1), Some(2)]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([3, 1])?.into()], leaves)?;
/// let found = sort(&a, SortOrder::DESCENDING)?;
/// let expected = Int32Array::from(vec![Some(3), Some(1), None, Some(2)]);
/// assert_eq!(found.leaves().as_ref(), &expected);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the array is flat, or its leaves cannot be compared.
pub fn sort(array: &RaggedArray, order: SortOrder) -> Result<RaggedArray> {
    let lists = find_innermost_level(array)?.layout();
    let leaves = array.leaves();
    if leaves.logical_null_count() == 0
        && let Some(sorted) = sort_values(leaves, lists, order)?
    {
        return array.with_leaves(sorted);
    }
    let positions = argsort_leaves(leaves, lists, order)?;
    array.with_leaves(take(leaves, &positions, None)?)
}

/// Returns, per innermost list, the indices that sort its leaves, as `Int64`; shares the lists.
///
/// The indices of null leaves are first or last, as in [`sort`]. No index is null.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{Int32Array, Int64Array};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::sort::{SortOrder, argsort};
/// // [[30, 10, 20], [7]]
/// let leaves = Arc::new(Int32Array::from(vec![30, 10, 20, 7]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([3, 1])?.into()], leaves)?;
/// let found = argsort(&a, SortOrder::ASCENDING)?;
/// assert_eq!(found.leaves().as_ref(), &Int64Array::from(vec![1, 2, 0, 0]));
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// Same as [`sort`].
pub fn argsort(array: &RaggedArray, order: SortOrder) -> Result<RaggedArray> {
    let lists = find_innermost_level(array)?.layout();
    let positions = argsort_leaves(array.leaves(), lists, order)?;
    let mut found: Vec<i64> = Vec::with_capacity(positions.len());
    for_each_list(lists, |list| {
        let start = list.start as u64;
        found.extend(positions.values()[list].iter().map(|p| to_position(p - start)));
    });
    array.with_leaves(Arc::new(Int64Array::from(found)))
}

/// Returns the index of every leaf among the [`sort`]ed valid leaves of its list; nulls stay null.
///
/// Equal leaves get different ranks: `[20, 10, 20]` gives `[1, 0, 2]`.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{Int32Array, Int64Array};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::sort::{SortOrder, rank};
/// // [[30, 10, 20], [7]]
/// let leaves = Arc::new(Int32Array::from(vec![30, 10, 20, 7]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([3, 1])?.into()], leaves)?;
/// let found = rank(&a, SortOrder::ASCENDING)?;
/// assert_eq!(found.leaves().as_ref(), &Int64Array::from(vec![2, 0, 1, 0]));
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// Same as [`sort`].
pub fn rank(array: &RaggedArray, order: SortOrder) -> Result<RaggedArray> {
    let lists = find_innermost_level(array)?.layout();
    let leaves = array.leaves();
    // Ranks count only valid leaves: sort nulls last, so that they do not shift the ranks of
    // values.
    let positions = argsort_leaves(leaves, lists, SortOrder { nulls_first: false, ..order })?;
    let mut found = vec![0i64; leaves.len()];
    for_each_list(lists, |list| {
        for (rank, position) in positions.values()[list].iter().enumerate() {
            found[to_index(*position)] = to_position(rank as u64);
        }
    });
    let nulls = find_validity(leaves);
    array.with_leaves(Arc::new(Int64Array::try_new(found.into(), nulls)?))
}

/// Sorts the elements of every list by the values of `by`.
///
/// `by` has the lists of the array, or only its outer levels. In the second case, whole elements of
/// an outer axis are sorted, for example visits by their times. Null lists stay null; a list that
/// is null only in `by` becomes empty.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{AsArray, Int32Array, types::Int32Type};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::sort::{SortOrder, sort_by};
/// // [[1, 2, 3]] by [[9, 7, 8]]
/// let lists = || -> serrate::Result<_> { Ok(vec![Offsets::from_lengths([3])?.into()]) };
/// let a = RaggedArray::try_new(1, lists()?, Arc::new(Int32Array::from(vec![1, 2, 3])))?;
/// let by = a.with_leaves(Arc::new(Int32Array::from(vec![9, 7, 8])))?;
/// let found = sort_by(&a, &by, SortOrder::ASCENDING)?;
/// assert_eq!(found.leaves().as_primitive::<Int32Type>().values(), &[2, 3, 1]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If `by` is flat or has more levels than the array, lists differ in length, or values cannot be
/// compared.
pub fn sort_by(array: &RaggedArray, by: &RaggedArray, order: SortOrder) -> Result<RaggedArray> {
    let axis = by.axes().len();
    if axis == 0 || axis > array.axes().len() {
        return Err(Error::invalid(format!(
            "the array has {} level(s) of lists, but the sort keys have {axis} level(s); give keys with at least one level, and no more levels than the array",
            array.axes().len()
        )));
    }
    let (array, by) = share_lists(array, by, axis)?;
    let level = array.axis(axis)?;
    let positions = argsort_leaves(by.leaves(), level.layout(), order)?;
    if axis == array.axes().len() {
        return array.with_leaves(take(array.leaves(), &positions, None)?);
    }
    let below = take_rows(&array.inner(axis)?, &positions)?;
    replace_axis(&array, array.len(), axis, level.clone(), below)
}

/// Returns the distinct values of every innermost list in ascending order, without nulls.
///
/// All NaN count as one value. A null list stays null.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::Int32Array;
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::sort::unique;
/// // [[2, 1, 2], [NULL]]
/// let leaves = Arc::new(Int32Array::from(vec![Some(2), Some(1), Some(2), None]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([3, 1])?.into()], leaves)?;
/// let found = unique(&a)?;
/// assert_eq!(found.lengths(1)?, [2, 0]);
/// assert_eq!(found.leaves().as_ref(), &Int32Array::from(vec![1, 2]));
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// Same as [`sort`].
pub fn unique(array: &RaggedArray) -> Result<RaggedArray> {
    let level = find_innermost_level(array)?;
    let leaves = array.leaves();
    let positions = argsort_leaves(leaves, level.layout(), SortOrder::ASCENDING)?;
    let nulls = find_validity(leaves);
    let same = make_equality(leaves)?;
    let mut kept: Vec<u64> = Vec::new();
    let mut lengths = Vec::with_capacity(level.layout().lists());
    for_each_list(level.layout(), |list| {
        let before = kept.len();
        for position in &positions.values()[list] {
            let at = to_index(*position);
            let first =
                kept.len() == before || kept.last().is_none_or(|last| !same(to_index(*last), at));
            if first && nulls.as_ref().is_none_or(|n| n.is_valid(at)) {
                kept.push(*position);
            }
        }
        lengths.push(kept.len() - before);
    });
    let leaves = take(leaves, &UInt64Array::from(kept), None)?;
    let lists =
        ListAxis::try_new(make_lists_like(level.layout(), lengths)?, level.nulls().cloned())?;
    let mut axes = array.axes().to_vec();
    axes.pop();
    axes.push(lists);
    RaggedArray::try_new(array.len(), axes, leaves)
}

fn find_innermost_level(array: &RaggedArray) -> Result<&ListAxis> {
    let flat = || Error::invalid("the array to sort has no lists; nest its values in lists first");
    array.axes().last().ok_or_else(flat)
}

fn for_each_list(lists: &Layout, each: impl FnMut(Range<usize>)) {
    (0..lists.lists()).map(|i| lists.range(i)).for_each(each);
}

fn to_index(position: u64) -> usize {
    usize::try_from(position).unwrap_or(usize::MAX)
}

fn to_position(position: u64) -> i64 {
    i64::try_from(position).unwrap_or(i64::MAX)
}

/// Converts values to unsigned keys that sort like the values: NaN has the largest key, and both
/// zeros have the same key.
trait Sortable: Copy {
    type Key: Copy + Ord + Into<u64>;

    /// Returns whether the key converts back to the same bits; false for -0.0 and some NaN.
    fn is_plain(self) -> bool;

    fn key(self) -> Self::Key;
    fn flip(key: Self::Key) -> Self::Key;
    fn back(key: Self::Key) -> Self;
}

macro_rules! unsigned {
    ($($t:ty),*) => {$(
        impl Sortable for $t {
            type Key = $t;
            fn is_plain(self) -> bool { true }
            fn key(self) -> $t { self }
            fn flip(key: $t) -> $t { !key }
            fn back(key: $t) -> $t { key }
        }
    )*};
}
unsigned!(u8, u16, u32, u64);

macro_rules! signed {
    ($($t:ty => $key:ty),*) => {$(
        impl Sortable for $t {
            type Key = $key;
            fn is_plain(self) -> bool { true }
            fn key(self) -> $key { self.cast_unsigned() ^ <$t>::MIN.cast_unsigned() }
            fn flip(key: $key) -> $key { !key }
            fn back(key: $key) -> $t { (key ^ <$t>::MIN.cast_unsigned()).cast_signed() }
        }
    )*};
}
signed!(i8 => u8, i16 => u16, i32 => u32, i64 => u64);

macro_rules! floats {
    ($($t:ty => $key:ty, $sign:expr),*) => {$(
        impl Sortable for $t {
            type Key = $key;
            fn is_plain(self) -> bool {
                let bits = self.to_bits();
                bits != $sign && (!self.is_nan() || bits == <$t>::NAN.to_bits())
            }
            fn key(self) -> $key {
                let bits = self.to_bits();
                match bits & $sign {
                    _ if self.is_nan() => <$key>::MAX,
                    _ if self == 0.0 => $sign,
                    0 => bits | $sign,
                    _ => !bits,
                }
            }
            fn flip(key: $key) -> $key { !key }
            fn back(key: $key) -> $t {
                match key & $sign {
                    _ if key == <$key>::MAX => <$t>::NAN,
                    0 => <$t>::from_bits(!key),
                    _ => <$t>::from_bits(key & !$sign),
                }
            }
        }
    )*};
}
floats!(f32 => u32, 1 << 31, f64 => u64, 1 << 63);

/// Sorts values without nulls by their unsigned keys ([`Sortable`]); `None` for types without such
/// keys.
fn sort_values(leaves: &ArrayRef, lists: &Layout, order: SortOrder) -> Result<Option<ArrayRef>> {
    fn sort_typed_values<T: ArrowPrimitiveType<Native: Sortable>>(
        values: &ArrayRef,
        lists: &Layout,
        order: SortOrder,
    ) -> ArrayRef {
        let mut out: Vec<T::Native> = values.as_primitive::<T>().values().to_vec();
        let mut keys = Vec::new();
        for_each_list(lists, |list| {
            let out = &mut out[list];
            if !out.iter().all(|v| v.is_plain()) {
                return match order.descending {
                    false => out.sort_by_key(|v| v.key()),
                    true => out.sort_by_key(|v| T::Native::flip(v.key())),
                };
            }
            keys.clear();
            keys.extend(out.iter().map(|v| v.key()));
            keys.sort_unstable();
            let back = |(v, key): (&mut T::Native, _)| *v = T::Native::back(key);
            match order.descending {
                false => out.iter_mut().zip(keys.iter().copied()).for_each(back),
                true => out.iter_mut().zip(keys.iter().rev().copied()).for_each(back),
            }
        });
        Arc::new(PrimitiveArray::<T>::new(out.into(), None))
    }
    let sorted = dispatch_native!(leaves, values, T => sort_typed_values::<T>(values, lists, order), return Ok(None));
    let given = leaves.data_type();
    Ok(Some(match given {
        DataType::Float16 | DataType::Boolean => cast(&sorted, given)?,
        _ => reinterpret_values(&sorted, given)?,
    }))
}

/// Returns an integer for each leaf. The integers compare like the leaves, and NaN has the
/// greatest. Returns `None` for types such as strings.
pub(super) fn order_keys(leaves: &ArrayRef) -> Result<Option<Vec<u64>>> {
    fn order_typed<T: ArrowPrimitiveType<Native: Sortable>>(values: &ArrayRef) -> Vec<u64> {
        values.as_primitive::<T>().values().iter().map(|v| v.key().into()).collect()
    }
    Ok(dispatch_native!(leaves, values, T => Some(order_typed::<T>(values)), None))
}

/// Calls `each` with the range of every list and the integers of its leaves ([`order_keys`]), which
/// are arbitrary for null leaves. Returns false for types without such integers.
pub(super) fn for_each_list_of_keys(
    leaves: &ArrayRef,
    lists: &Layout,
    each: &mut dyn FnMut(Range<usize>, &[u64]),
) -> Result<bool> {
    fn visit_typed<T: ArrowPrimitiveType<Native: Sortable>>(
        values: &ArrayRef,
        lists: &Layout,
        each: &mut dyn FnMut(Range<usize>, &[u64]),
    ) {
        let flat: &[T::Native] = values.as_primitive::<T>().values();
        // Reuse one buffer for all lists, so that it stays in the CPU cache.
        let mut keys: Vec<u64> = Vec::new();
        for_each_list(lists, |list| {
            keys.clear();
            keys.extend(flat[list.clone()].iter().map(|v| -> u64 { v.key().into() }));
            each(list, &keys);
        });
    }
    dispatch_native!(leaves, values, T => visit_typed::<T>(values, lists, each), return Ok(false));
    Ok(true)
}

/// Casts a dictionary of floats to floats, because Arrow distinguishes 0.0 from -0.0, and NaN with
/// different bits, when it sorts a dictionary. Returns `None` for other leaves.
pub(super) fn unpack_float_dictionary(leaves: &ArrayRef) -> Result<Option<ArrayRef>> {
    match leaves.data_type() {
        DataType::Dictionary(_, values) if values.is_floating() => Ok(Some(cast(leaves, values)?)),
        _ => Ok(None),
    }
}

pub(super) fn argsort_leaves(
    leaves: &ArrayRef,
    lists: &Layout,
    order: SortOrder,
) -> Result<UInt64Array> {
    if let Some(leaves) = unpack_float_dictionary(leaves)? {
        return argsort_leaves(&leaves, lists, order);
    }
    let nulls = find_validity(leaves);
    let nulls = nulls.as_ref();
    if leaves.data_type().is_null() {
        return Ok(UInt64Array::from_iter_values(0..leaves.len() as u64));
    }
    dispatch_native!(
        leaves,
        values,
        T => Ok(argsort_by_keys::<T>(values, nulls, lists, order)),
        argsort_by_comparison(leaves, nulls, lists, order)
    )
}

fn argsort_by_keys<T: ArrowPrimitiveType<Native: Sortable>>(
    values: &ArrayRef,
    nulls: Option<&NullBuffer>,
    lists: &Layout,
    order: SortOrder,
) -> UInt64Array {
    let flat = values.as_primitive::<T>().values();
    let key = |i: usize| -> u64 {
        let key = flat[i].key();
        // Invert the key for descending order before it is widened to 64 bits, so that the bits
        // above the key stay 0.
        (if order.descending { T::Native::flip(key) } else { key }).into()
    };
    if size_of::<T::Native>() > 4 {
        let mut scratch: Vec<(u64, u64)> = Vec::new();
        let mut packed: Vec<u64> = Vec::new();
        return argsort_lists(nulls, lists, order, |valid, out| {
            let (Some(first), Some(last)) = (valid.first().copied(), valid.last().copied()) else {
                return;
            };
            let (least, greatest) = valid.iter().fold((u64::MAX, 0), |(least, greatest), i| {
                let key = key(to_index(*i));
                (least.min(key), greatest.max(key))
            });
            // The keys of a list, such as times in microseconds, often span a small range. Then
            // pack key and index into one integer, because integers sort faster than pairs.
            let index_bits = u64::BITS - (last - first).leading_zeros();
            if (greatest - least).leading_zeros() >= index_bits && index_bits < u64::BITS {
                packed.clear();
                let pack = |i: &u64| (key(to_index(*i)) - least) << index_bits | (*i - first);
                packed.extend(valid.iter().map(pack));
                packed.sort_unstable();
                let mask = (1 << index_bits) - 1;
                out.extend(packed.iter().map(|packed| (packed & mask) + first));
                return;
            }
            scratch.clear();
            scratch.extend(valid.iter().map(|i| (key(to_index(*i)), *i)));
            scratch.sort_unstable();
            out.extend(scratch.iter().map(|(_, i)| *i));
        });
    }
    // Sort integers that have a key in the upper half and its index in the list in the lower half.
    // Equal keys therefore stay in order.
    let mut scratch: Vec<u64> = Vec::new();
    argsort_lists(nulls, lists, order, |valid, out| {
        let Some(first) = valid.first().copied() else { return };
        if valid.last().is_some_and(|last| last - first > u64::from(u32::MAX)) {
            let mut wide: Vec<(u64, u64)> = valid.iter().map(|i| (key(to_index(*i)), *i)).collect();
            wide.sort_unstable();
            out.extend(wide.iter().map(|(_, i)| *i));
            return;
        }
        scratch.clear();
        scratch.extend(valid.iter().map(|i| key(to_index(*i)) << 32 | (*i - first)));
        scratch.sort_unstable();
        out.extend(scratch.iter().map(|packed| (packed & u64::from(u32::MAX)) + first));
    })
}

fn argsort_by_comparison(
    leaves: &ArrayRef,
    nulls: Option<&NullBuffer>,
    lists: &Layout,
    order: SortOrder,
) -> Result<UInt64Array> {
    let compare = make_leaf_comparator(leaves)?;
    Ok(argsort_lists(nulls, lists, order, |valid, out| {
        valid.sort_by(|a, b| {
            let found = compare(to_index(*a), to_index(*b));
            if order.descending { found.reverse() } else { found }
        });
        out.extend_from_slice(valid);
    }))
}

type LeafComparator = Box<dyn Fn(usize, usize) -> Ordering + Send + Sync>;

fn make_leaf_comparator(leaves: &ArrayRef) -> Result<LeafComparator> {
    let sortable = |t: &DataType| !t.is_nested() && !matches!(t, DataType::RunEndEncoded(..));
    if !sortable(leaves.data_type()) {
        return Err(Error::type_of(
            "values to sort",
            "scalars, not lists or structs (flatten lists first)",
            leaves.data_type(),
        ));
    }
    Ok(make_comparator(leaves, leaves, SortOptions::default())?)
}

/// Returns the indices that sort the leaves of each list. `sort` gets the indices of the valid
/// leaves of a list, and appends them, sorted, to its second argument.
fn argsort_lists(
    nulls: Option<&NullBuffer>,
    lists: &Layout,
    order: SortOrder,
    mut sort: impl FnMut(&mut Vec<u64>, &mut Vec<u64>),
) -> UInt64Array {
    let mut out: Vec<u64> = Vec::with_capacity(lists.children());
    let (mut valid, mut null): (Vec<u64>, Vec<u64>) = (Vec::new(), Vec::new());
    for_each_list(lists, |list| {
        valid.clear();
        null.clear();
        match nulls {
            None => valid.extend(list.start as u64..list.end as u64),
            Some(nulls) => {
                for i in list {
                    if nulls.is_valid(i) { valid.push(i as u64) } else { null.push(i as u64) }
                }
            }
        }
        if order.nulls_first {
            out.extend_from_slice(&null);
        }
        sort(&mut valid, &mut out);
        if !order.nulls_first {
            out.extend_from_slice(&null);
        }
    });
    UInt64Array::from(out)
}

pub(super) fn make_equality(leaves: &ArrayRef) -> Result<Box<dyn Fn(usize, usize) -> bool>> {
    fn compare_keys<T: ArrowPrimitiveType<Native: Sortable>>(
        values: &ArrayRef,
    ) -> Box<dyn Fn(usize, usize) -> bool> {
        let flat = values.as_primitive::<T>().values().clone();
        Box::new(move |a, b| flat[a].key() == flat[b].key())
    }
    if leaves.data_type().is_null() {
        return Ok(Box::new(|_, _| true));
    }
    if let Some(leaves) = unpack_float_dictionary(leaves)? {
        return make_equality(&leaves);
    }
    Ok(dispatch_native!(leaves, values, T => compare_keys::<T>(values), {
        let compare = make_leaf_comparator(leaves)?;
        Box::new(move |a, b| compare(a, b).is_eq())
    }))
}

/// Returns, for every innermost list, whether its leaves are sorted by `order`, which also
/// determines whether nulls must come first or last; null for a null list.
///
/// [`search`](super::search) requires sorted lists.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{BooleanArray, Int32Array};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::sort::{SortOrder, is_sorted};
/// // [[1, 3, 2], [7]]
/// let leaves = Arc::new(Int32Array::from(vec![1, 3, 2, 7]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([3, 1])?.into()], leaves)?;
/// let found = is_sorted(&a, SortOrder::ASCENDING)?;
/// assert_eq!(found.leaves().as_ref(), &BooleanArray::from(vec![false, true]));
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// Same as [`sort`].
pub fn is_sorted(array: &RaggedArray, order: SortOrder) -> Result<RaggedArray> {
    let level = find_innermost_level(array)?;
    let positions = argsort_leaves(array.leaves(), level.layout(), order)?;
    let mut sorted = Vec::with_capacity(level.layout().lists());
    for_each_list(level.layout(), |list| {
        sorted.push(positions.values()[list].windows(2).all(|w| w[0] < w[1]));
    });
    let sorted = BooleanBuffer::from(sorted);
    let leaves = arrow::array::BooleanArray::new(sorted, level.nulls().cloned());
    let mut axes = array.axes().to_vec();
    axes.pop();
    RaggedArray::try_new(array.len(), axes, Arc::new(leaves))
}
