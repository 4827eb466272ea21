//! Order within lists: sorting, positions in order, ranks, different values.
//!
//! Sorting is stable: of equal values the earlier one stays the earlier one, whichever way it goes. 0.0
//! and -0.0 are equal, and so is any NaN to any other. NaN is greater than any number, as everywhere in
//! SQL here, so that it comes last when numbers ascend and first when they descend. Where nulls go is
//! said apart from that.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, Int64Array, PrimitiveArray, UInt64Array,
    make_comparator,
};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::{SortOptions, cast, take};
use arrow::datatypes::{
    DataType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};

use super::align::aligned;
use super::gather::{lists_like, take_rows, with_axis};
use super::reduce::{native_int, reinterpret};
use crate::array::{Layout, ListAxis, RaggedArray};
use crate::error::{Error, Result};

/// Which way values are sorted. The default: ascending, nulls last, as in DuckDB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Order {
    /// Largest first.
    pub descending: bool,
    /// Nulls before all values rather than behind them.
    pub nulls_first: bool,
}

impl Order {
    /// Smallest first, nulls last.
    pub const ASCENDING: Self = Self { descending: false, nulls_first: false };
    /// Largest first, nulls last.
    pub const DESCENDING: Self = Self { descending: true, nulls_first: false };
}

/// The leaves of every innermost list in order; the lists stay, and are shared.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow::array::{Array, Int32Array};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::sort::{Order, sort};
/// // [[3, NULL, 1], [2]]
/// let leaves = Arc::new(Int32Array::from(vec![Some(3), None, Some(1), Some(2)]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([3, 1])?.into()], leaves)?;
/// let found = sort(&a, Order::DESCENDING)?;
/// let expected = Int32Array::from(vec![Some(3), Some(1), None, Some(2)]);
/// assert_eq!(found.leaves().as_ref(), &expected);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// When the array is flat, or its leaves do not compare.
pub fn sort(array: &RaggedArray, order: Order) -> Result<RaggedArray> {
    let lists = innermost(array)?.layout();
    let leaves = array.leaves();
    if leaves.logical_null_count() == 0
        && let Some(sorted) = sorted_values(leaves, lists, order)?
    {
        return array.with_leaves(sorted);
    }
    let places = argsorted(leaves, lists, order)?;
    array.with_leaves(take(leaves, &places, None)?)
}

/// The position in its innermost list of what comes first in order, second, and so on: `Int64`, in the
/// lists of the array.
///
/// # Errors
/// As [`sort`].
pub fn argsort(array: &RaggedArray, order: Order) -> Result<RaggedArray> {
    let lists = innermost(array)?.layout();
    let places = argsorted(array.leaves(), lists, order)?;
    let mut found: Vec<i64> = Vec::with_capacity(places.len());
    each_list(lists, |list| {
        let start = list.start as u64;
        found.extend(places.values()[list].iter().map(|p| position(p - start)));
    });
    array.with_leaves(Arc::new(Int64Array::from(found)))
}

/// The position of every leaf once its innermost list is [`sort`]ed, counted from 0; null for a null
/// leaf.
///
/// # Errors
/// As [`sort`].
pub fn rank(array: &RaggedArray, order: Order) -> Result<RaggedArray> {
    let lists = innermost(array)?.layout();
    let leaves = array.leaves();
    // Nulls have no rank; what is before them does not count them.
    let places = argsorted(leaves, lists, Order { nulls_first: false, ..order })?;
    let mut found = vec![0i64; leaves.len()];
    each_list(lists, |list| {
        for (rank, place) in places.values()[list].iter().enumerate() {
            found[index(*place)] = position(rank as u64);
        }
    });
    let nulls = leaves.logical_nulls().filter(|n| n.null_count() > 0);
    array.with_leaves(Arc::new(Int64Array::try_new(found.into(), nulls)?))
}

/// The elements of every list in the order of what `by` has for them.
///
/// `by` has the lists of the array, or only its outer levels: then whole elements of an outer axis are
/// put in order, with all they hold (visits by their times). A list that is null on either side keeps
/// its validity; null in `by` alone, it is as if empty.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow::array::{AsArray, Int32Array, types::Int32Type};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::sort::{Order, sort_by};
/// // [[1, 2, 3]] by [[9, 7, 8]]
/// let lists = || -> serrate::Result<_> { Ok(vec![Offsets::from_lengths([3])?.into()]) };
/// let a = RaggedArray::try_new(1, lists()?, Arc::new(Int32Array::from(vec![1, 2, 3])))?;
/// let by = a.with_leaves(Arc::new(Int32Array::from(vec![9, 7, 8])))?;
/// let found = sort_by(&a, &by, Order::ASCENDING)?;
/// assert_eq!(found.leaves().as_primitive::<Int32Type>().values(), &[2, 3, 1]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// When `by` is flat or has more levels than the array, when two lists differ in length, and when the
/// values of `by` do not compare.
pub fn sort_by(array: &RaggedArray, by: &RaggedArray, order: Order) -> Result<RaggedArray> {
    let axis = by.axes().len();
    if axis == 0 || axis > array.axes().len() {
        return Err(Error::invalid(format!(
            "sorting an array with {} level(s) of lists by one with {axis}; it needs at least one and no more than the array",
            array.axes().len()
        )));
    }
    let (array, by) = aligned(array, by, axis)?;
    let level = array.axis(axis)?;
    let places = argsorted(by.leaves(), level.layout(), order)?;
    if axis == array.axes().len() {
        return array.with_leaves(take(array.leaves(), &places, None)?);
    }
    let below = take_rows(&array.inner(axis)?, &places)?;
    with_axis(&array, array.len(), axis, level.clone(), below)
}

/// The different values of every innermost list, ascending; nulls are left out.
///
/// NaN is one value. A null list stays null.
///
/// # Errors
/// As [`sort`].
pub fn unique(array: &RaggedArray) -> Result<RaggedArray> {
    let level = innermost(array)?;
    let leaves = array.leaves();
    let places = argsorted(leaves, level.layout(), Order::ASCENDING)?;
    let nulls = leaves.logical_nulls().filter(|n| n.null_count() > 0);
    let same = same_values(leaves)?;
    let mut kept: Vec<u64> = Vec::new();
    let mut lengths = Vec::with_capacity(level.layout().lists());
    each_list(level.layout(), |list| {
        let before = kept.len();
        for place in &places.values()[list] {
            let at = index(*place);
            let first =
                kept.len() == before || kept.last().is_none_or(|last| !same(index(*last), at));
            if first && nulls.as_ref().is_none_or(|n| n.is_valid(at)) {
                kept.push(*place);
            }
        }
        lengths.push(kept.len() - before);
    });
    let leaves = take(leaves, &UInt64Array::from(kept), None)?;
    let lists = ListAxis::try_new(lists_like(level.layout(), lengths)?, level.nulls().cloned())?;
    let mut axes = array.axes().to_vec();
    axes.pop();
    axes.push(lists);
    RaggedArray::try_new(array.len(), axes, leaves)
}

fn innermost(array: &RaggedArray) -> Result<&ListAxis> {
    let flat = || Error::invalid("sorting goes through lists; the array is flat");
    array.axes().last().ok_or_else(flat)
}

fn each_list(lists: &Layout, each: impl FnMut(Range<usize>)) {
    (0..lists.lists()).map(|i| lists.range(i)).for_each(each);
}

/// A position that was made of a usize.
fn index(place: u64) -> usize {
    usize::try_from(place).unwrap_or(usize::MAX)
}

fn position(place: u64) -> i64 {
    i64::try_from(place).unwrap_or(i64::MAX)
}

/// An unsigned integer in the order of what it stands for, and back; NaN is the largest, both zeros are one.
trait Sortable: Copy {
    type Key: Copy + Ord + Into<u64>;

    /// Whether the value is what its key gives back.
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

/// Runs a macro with the type that leaves are sorted in, and the leaves in it; for what has none in a
/// register, runs the other expression.
macro_rules! by_register {
    ($leaves:expr, $values:ident, $t:ident => $typed:expr, $other:expr) => {{
        macro_rules! run {
            ($arrow:ty, $as:expr) => {{
                type $t = $arrow;
                let $values: &ArrayRef = $as;
                $typed
            }};
        }
        let given = $leaves;
        match given.data_type() {
            DataType::Int8 => run!(Int8Type, given),
            DataType::Int16 => run!(Int16Type, given),
            DataType::UInt8 => run!(UInt8Type, given),
            DataType::UInt16 => run!(UInt16Type, given),
            DataType::UInt32 => run!(UInt32Type, given),
            DataType::UInt64 => run!(UInt64Type, given),
            DataType::Float32 => run!(Float32Type, given),
            DataType::Float64 => run!(Float64Type, given),
            DataType::Float16 => run!(Float32Type, &cast(given, &DataType::Float32)?),
            DataType::Boolean => run!(UInt8Type, &cast(given, &DataType::UInt8)?),
            t => match native_int(t) {
                Some(DataType::Int32) => run!(Int32Type, &reinterpret(given, &DataType::Int32)?),
                Some(_) => run!(Int64Type, &reinterpret(given, &DataType::Int64)?),
                None => $other,
            },
        }
    }};
}

/// Values without nulls, sorted as what they are; `None` for what only compares.
fn sorted_values(leaves: &ArrayRef, lists: &Layout, order: Order) -> Result<Option<ArrayRef>> {
    fn typed<T: ArrowPrimitiveType<Native: Sortable>>(
        values: &ArrayRef,
        lists: &Layout,
        order: Order,
    ) -> ArrayRef {
        let mut out: Vec<T::Native> = values.as_primitive::<T>().values().to_vec();
        let mut keys = Vec::new();
        each_list(lists, |list| {
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
    let sorted =
        by_register!(leaves, values, T => typed::<T>(values, lists, order), return Ok(None));
    let given = leaves.data_type();
    Ok(Some(match given {
        DataType::Float16 | DataType::Boolean => cast(&sorted, given)?,
        _ => reinterpret(&sorted, given)?,
    }))
}

/// Floats in a dictionary as they are: what compares dictionaries knows two zeros and many NaN.
pub(super) fn plain_floats(leaves: &ArrayRef) -> Result<Option<ArrayRef>> {
    match leaves.data_type() {
        DataType::Dictionary(_, values) if values.is_floating() => Ok(Some(cast(leaves, values)?)),
        _ => Ok(None),
    }
}

/// Among all leaves, those of each list in order.
fn argsorted(leaves: &ArrayRef, lists: &Layout, order: Order) -> Result<UInt64Array> {
    if let Some(leaves) = plain_floats(leaves)? {
        return argsorted(&leaves, lists, order);
    }
    let nulls = leaves.logical_nulls().filter(|n| n.null_count() > 0);
    let nulls = nulls.as_ref();
    if leaves.data_type().is_null() {
        return Ok(UInt64Array::from_iter_values(0..leaves.len() as u64));
    }
    by_register!(
        leaves,
        values,
        T => Ok(by_keys::<T>(values, nulls, lists, order)),
        by_comparison(leaves, nulls, lists, order)
    )
}

fn by_keys<T: ArrowPrimitiveType<Native: Sortable>>(
    values: &ArrayRef,
    nulls: Option<&NullBuffer>,
    lists: &Layout,
    order: Order,
) -> UInt64Array {
    let flat = values.as_primitive::<T>().values();
    let key = |i: usize| -> u64 {
        let key = flat[i].key();
        // All bits of a narrower key, so that what is flipped stays narrow.
        (if order.descending { T::Native::flip(key) } else { key }).into()
    };
    if size_of::<T::Native>() > 4 {
        let mut scratch: Vec<(u64, u64)> = Vec::new();
        return in_lists(nulls, lists, order, |there, out| {
            scratch.clear();
            scratch.extend(there.iter().map(|i| (key(index(*i)), *i)));
            scratch.sort_unstable();
            out.extend(scratch.iter().map(|(_, i)| *i));
        });
    }
    // Key and place in one number: the place decides between equal keys.
    let mut scratch: Vec<u64> = Vec::new();
    in_lists(nulls, lists, order, |there, out| {
        let Some(first) = there.first().copied() else { return };
        if there.last().is_some_and(|last| last - first > u64::from(u32::MAX)) {
            let mut wide: Vec<(u64, u64)> = there.iter().map(|i| (key(index(*i)), *i)).collect();
            wide.sort_unstable();
            out.extend(wide.iter().map(|(_, i)| *i));
            return;
        }
        scratch.clear();
        scratch.extend(there.iter().map(|i| key(index(*i)) << 32 | (*i - first)));
        scratch.sort_unstable();
        out.extend(scratch.iter().map(|packed| (packed & u64::from(u32::MAX)) + first));
    })
}

fn by_comparison(
    leaves: &ArrayRef,
    nulls: Option<&NullBuffer>,
    lists: &Layout,
    order: Order,
) -> Result<UInt64Array> {
    let compare = comparator(leaves)?;
    Ok(in_lists(nulls, lists, order, |there, out| {
        there.sort_by(|a, b| {
            let found = compare(index(*a), index(*b));
            if order.descending { found.reverse() } else { found }
        });
        out.extend_from_slice(there);
    }))
}

type Compare = Box<dyn Fn(usize, usize) -> Ordering + Send + Sync>;

fn comparator(leaves: &ArrayRef) -> Result<Compare> {
    let sortable = |t: &DataType| !t.is_nested() && !matches!(t, DataType::RunEndEncoded(..));
    if !sortable(leaves.data_type()) {
        return Err(Error::type_of("sorting", "flat values", leaves.data_type()));
    }
    Ok(make_comparator(leaves, leaves, SortOptions::default())?)
}

/// Puts the places of each list in order that are not null, and those that are before or behind them.
fn in_lists(
    nulls: Option<&NullBuffer>,
    lists: &Layout,
    order: Order,
    mut sort: impl FnMut(&mut Vec<u64>, &mut Vec<u64>),
) -> UInt64Array {
    let mut out: Vec<u64> = Vec::with_capacity(lists.children());
    let (mut there, mut missing): (Vec<u64>, Vec<u64>) = (Vec::new(), Vec::new());
    each_list(lists, |list| {
        there.clear();
        missing.clear();
        match nulls {
            None => there.extend(list.start as u64..list.end as u64),
            Some(nulls) => {
                for i in list {
                    if nulls.is_valid(i) { there.push(i as u64) } else { missing.push(i as u64) }
                }
            }
        }
        if order.nulls_first {
            out.extend_from_slice(&missing);
        }
        sort(&mut there, &mut out);
        if !order.nulls_first {
            out.extend_from_slice(&missing);
        }
    });
    UInt64Array::from(out)
}

/// Whether two leaves that are not null are the same value.
pub(super) fn same_values(leaves: &ArrayRef) -> Result<Box<dyn Fn(usize, usize) -> bool>> {
    fn keys<T: ArrowPrimitiveType<Native: Sortable>>(
        values: &ArrayRef,
    ) -> Box<dyn Fn(usize, usize) -> bool> {
        let flat = values.as_primitive::<T>().values().clone();
        Box::new(move |a, b| flat[a].key() == flat[b].key())
    }
    if leaves.data_type().is_null() {
        return Ok(Box::new(|_, _| true));
    }
    if let Some(leaves) = plain_floats(leaves)? {
        return same_values(&leaves);
    }
    Ok(by_register!(leaves, values, T => keys::<T>(values), {
        let compare = comparator(leaves)?;
        Box::new(move |a, b| compare(a, b).is_eq())
    }))
}

/// Whether the leaves of every innermost list ascend, nulls nowhere but at the end: what searching in
/// lists needs.
///
/// One value per innermost list, null for a null one.
///
/// # Errors
/// As [`sort`].
pub fn is_sorted(array: &RaggedArray, order: Order) -> Result<RaggedArray> {
    let level = innermost(array)?;
    let places = argsorted(array.leaves(), level.layout(), order)?;
    let mut sorted = Vec::with_capacity(level.layout().lists());
    each_list(level.layout(), |list| {
        sorted.push(places.values()[list].windows(2).all(|w| w[0] < w[1]));
    });
    let sorted = BooleanBuffer::from(sorted);
    let leaves = arrow::array::BooleanArray::new(sorted, level.nulls().cloned());
    let mut axes = array.axes().to_vec();
    axes.pop();
    RaggedArray::try_new(array.len(), axes, Arc::new(leaves))
}
