//! Binary search in sorted lists.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, Datum, Int64Array, PrimitiveArray,
    make_comparator,
};
use arrow::buffer::NullBuffer;
use arrow::compute::{SortOptions, cast};
use arrow::datatypes::{
    DataType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimeUnit, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};

use super::align::share_lists;
use super::elementwise::find_common_decimal;
use super::times::{
    are_whole_microseconds, compare_exactly, find_parsed_type, parse_exact_seconds,
    to_exact_seconds,
};
use crate::array::exact_casts::cast_strictly;
use crate::array::{Layout, ListAxis, RaggedArray};
use crate::error::{Error, Result};

/// Index that [`searchsorted`] returns for a needle that equals elements of the list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SearchSide {
    /// The index of the first equal element: the number of elements less than the needle.
    #[default]
    Left,
    /// The index after the last equal element: the number of elements not greater than the needle.
    Right,
}

/// Returns, for every row, the index in its ascending list at which the needle would be inserted (0
/// to the length of the list), like NumPy's `searchsorted`.
///
/// See [`searchsorted_lists`] for several needles per list.
///
/// `needles` is one value for all rows or one per row. Numbers of different types compare by value,
/// but an integer or a decimal is converted to a float to compare with a float. Times of different
/// units compare exactly. A string needle is parsed as a time if the lists hold times. NaN sorts
/// after all numbers, null elements after NaN; a null row or a null needle gives null. For an
/// unsorted list, the result is an unspecified index from 0 to its length.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{Array, Int32Array};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::search::{SearchSide, searchsorted};
/// // [[10, 20, 20, 30], [], [5]]
/// let leaves = Arc::new(Int32Array::from(vec![10, 20, 20, 30, 5]));
/// let a = RaggedArray::try_new(3, vec![Offsets::from_lengths([4, 0, 1])?.into()], leaves)?;
/// let twenty = Int32Array::new_scalar(20);
/// assert_eq!(searchsorted(&a, &twenty, SearchSide::Left)?.values(), &[1, 0, 1]);
/// assert_eq!(searchsorted(&a, &twenty, SearchSide::Right)?.values(), &[3, 0, 1]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the array does not have exactly one level of lists, needles per row do not match the number
/// of rows, or the two types cannot be compared.
pub fn searchsorted(
    array: &RaggedArray,
    needles: &dyn Datum,
    side: SearchSide,
) -> Result<Int64Array> {
    let [level] = array.axes() else {
        return Err(Error::invalid(format!(
            "searchsorted takes an array with one level of lists, but the array has {} level(s); remove levels by indexing or flatten, or nest a flat array in lists",
            array.axes().len()
        )));
    };
    let (given, one) = needles.get();
    if !one && given.len() != array.len() {
        return Err(Error::invalid(format!(
            "searchsorted: {} needle(s) are given for {} row(s); give one needle for all rows, or one per row",
            given.len(),
            array.len()
        )));
    }
    let needle_layout = if one { NeedleLayout::One } else { NeedleLayout::PerList };
    let needles = arrow::array::make_array(given.to_data());
    find_positions(level, array.leaves(), &needles, needle_layout, side)
}

/// Returns, for every needle, the index in its ascending list at which it would be inserted: 0 to
/// the length of the list.
///
/// The result is nested like the needles.
///
/// The outer levels of the needles and of the array are equal. Each innermost list of the array has
/// a list of needles, or one needle if the needles have one level fewer. Types, NaN and nulls are
/// as in [`searchsorted`]; a null list gives null.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{AsArray, Int32Array, types::Int64Type};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::search::{SearchSide, searchsorted_lists};
/// let lists = |lengths: [usize; 2], leaves: Vec<i32>| -> serrate::Result<_> {
///     let axis = Offsets::from_lengths(lengths)?.into();
///     RaggedArray::try_new(2, vec![axis], Arc::new(Int32Array::from(leaves)))
/// };
/// // searches [[10, 20, 30], [5]] for [[20, 35], [1, 5]]
/// let found = searchsorted_lists(
///     &lists([3, 1], vec![10, 20, 30, 5])?,
///     &lists([2, 2], vec![20, 35, 1, 5])?,
///     SearchSide::Left,
/// )?;
/// assert_eq!(found.leaves().as_primitive::<Int64Type>().values(), &[1, 3, 0, 0]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the array has no lists, its levels do not match the levels of the needles, outer lists that
/// are not null differ in length, or the two types cannot be compared.
pub fn searchsorted_lists(
    array: &RaggedArray,
    needles: &RaggedArray,
    side: SearchSide,
) -> Result<RaggedArray> {
    let (levels, given) = (array.axes().len(), needles.axes().len());
    if levels == 0 {
        return Err(Error::invalid(
            "searchsorted: the array has no lists; nest its values in lists first",
        ));
    }
    if given != levels && given + 1 != levels {
        return Err(Error::invalid(format!(
            "searchsorted: the needles have {given} level(s) of lists, but the array has {levels}; give needles with the same number of levels, or one level fewer"
        )));
    }
    let (array, needles) = share_lists(array, needles, levels - 1)?;
    let level = array.axis(levels)?;
    let needle_layout = match needles.axes().get(levels - 1) {
        Some(lists) if lists.layout().lists() != level.layout().lists() => {
            return Err(Error::invalid(format!(
                "searchsorted: {} list(s) of needles are given for {} list(s) of the array; give one list of needles per list of the array",
                lists.layout().lists(),
                level.layout().lists()
            )));
        }
        Some(lists) => NeedleLayout::Lists(lists.layout()),
        None => NeedleLayout::PerList,
    };
    let found = find_positions(level, array.leaves(), needles.leaves(), needle_layout, side)?;
    needles.with_leaves(std::sync::Arc::new(found))
}

fn drops_nanoseconds(t: &DataType) -> bool {
    match t {
        DataType::Date32 | DataType::Date64 => true,
        DataType::Timestamp(unit, _) => *unit != TimeUnit::Nanosecond,
        _ => false,
    }
}

fn find_positions(
    level: &ListAxis,
    leaves: &ArrayRef,
    needles: &ArrayRef,
    which: NeedleLayout<'_>,
    side: SearchSide,
) -> Result<Int64Array> {
    let (mut leaves, mut needles) = (unpack_dictionary(leaves)?, unpack_dictionary(needles)?);
    if needles.data_type().is_string()
        && drops_nanoseconds(leaves.data_type())
        && are_whole_microseconds(&needles)?.true_count() < needles.len()
    {
        let zone = match leaves.data_type() {
            DataType::Timestamp(_, zone) => zone.clone(),
            _ => None,
        };
        (leaves, needles) = (to_exact_seconds(&leaves)?, parse_exact_seconds(&needles, zone)?);
    }
    let parsed = find_parsed_type(leaves.data_type());
    if needles.data_type().is_string() && parsed != *leaves.data_type() {
        needles = cast_strictly(&needles, &parsed)?;
    }
    let search = ListSearch { level, which, side };
    let (leaf, needle) = (leaves.data_type().clone(), needles.data_type().clone());
    if needle.is_null() || leaf.is_null() {
        return search.run(needles.logical_nulls(), |_, _| Ordering::Greater);
    }
    if leaf.is_numeric() && needle.is_numeric() {
        if !leaf.is_decimal() && !needle.is_decimal() {
            return search.compare_numbers(&leaves, &needles);
        }
        if leaf.is_floating() || needle.is_floating() {
            let as_doubles = |numbers: &ArrayRef| cast_strictly(numbers, &DataType::Float64);
            return search.compare_numbers(&as_doubles(&leaves)?, &as_doubles(&needles)?);
        }
    }
    let (leaves, needles) = unify_types(&leaves, &needles)?;
    let options = SortOptions { descending: false, nulls_first: false };
    let compare = make_comparator(&leaves, &needles, options)?;
    search.run(needles.logical_nulls(), compare)
}

/// Casts leaves and needles to a type in which they compare exactly. If both are numbers, one is a
/// decimal and none is a float.
fn unify_types(leaves: &ArrayRef, needles: &ArrayRef) -> Result<(ArrayRef, ArrayRef)> {
    let (leaf, needle) = (leaves.data_type(), needles.data_type());
    let no_match = || {
        Error::type_of(
            "the needle of searchsorted",
            format!("a type comparable with {leaf} (cast the needles or the array first)"),
            needle,
        )
    };
    if leaf == needle {
        return Ok((Arc::clone(leaves), Arc::clone(needles)));
    }
    if compare_exactly(leaf, needle) {
        // Convert both sides to seconds with nine decimals, which represent times of every unit
        // exactly.
        return Ok((to_exact_seconds(leaves)?, to_exact_seconds(needles)?));
    }
    if leaf.is_numeric() && needle.is_numeric() {
        // Convert both sides to a common decimal type, because neither type may hold all values of
        // the other: DECIMAL(3, 1) holds 0.5 but not 1000, and an integer type holds 1000 but not
        // 0.5.
        let common = find_common_decimal(leaf, needle).ok_or_else(no_match)?;
        return Ok((cast(leaves, &common)?, cast(needles, &common)?));
    }
    let exact = cast(needles, leaf).map_err(|_| no_match())?;
    if exact.logical_null_count() > needles.logical_null_count() {
        return Err(no_match());
    }
    let is_exact = || -> Result<bool> {
        let back = cast(&exact, needle).map_err(|_| no_match())?;
        Ok(back.as_ref() == needles.as_ref())
    };
    if needle.is_string() || is_exact()? {
        return Ok((Arc::clone(leaves), exact));
    }
    // The needle has a finer unit than the leaves, so compare in the unit of the needle.
    Ok((cast(leaves, needle).map_err(|_| no_match())?, Arc::clone(needles)))
}

fn unpack_dictionary(values: &ArrayRef) -> Result<ArrayRef> {
    Ok(match values.data_type() {
        DataType::Dictionary(_, of) => cast(values, of)?,
        _ => values.clone(),
    })
}

#[derive(Clone, Copy)]
enum NeedleLayout<'a> {
    One,
    PerList,
    Lists(&'a Layout),
}

struct ListSearch<'a> {
    level: &'a ListAxis,
    which: NeedleLayout<'a>,
    side: SearchSide,
}

impl ListSearch<'_> {
    /// Returns, for each needle, the index in its list at which it would be inserted; null if the
    /// needle or the list is null. `compare(i, j)` compares leaf `i` of all leaves with needle `j`
    /// of all needles.
    fn run(
        &self,
        needle_nulls: Option<NullBuffer>,
        compare: impl Fn(usize, usize) -> Ordering,
    ) -> Result<Int64Array> {
        let layout = self.level.layout();
        let lists = layout.lists();
        let found = match self.which {
            NeedleLayout::Lists(needles) => needles.children(),
            _ => lists,
        };
        let mut positions = Vec::with_capacity(found);
        for list in 0..lists {
            let range = layout.range(list);
            let needles = match self.which {
                NeedleLayout::One => 0..1,
                NeedleLayout::PerList => list..list + 1,
                NeedleLayout::Lists(needles) => needles.range(list),
            };
            for needle in needles {
                let (mut low, mut high) = (range.start, range.end);
                while low < high {
                    let mid = low + (high - low) / 2;
                    let before = match compare(mid, needle) {
                        Ordering::Less => true,
                        Ordering::Equal => self.side == SearchSide::Right,
                        Ordering::Greater => false,
                    };
                    if before { low = mid + 1 } else { high = mid }
                }
                positions.push(i64::try_from(low - range.start).unwrap_or(i64::MAX));
            }
        }
        let unknown = needle_nulls.as_ref().is_some_and(|n| n.null_count() > 0);
        let needle_nulls = match self.which {
            NeedleLayout::One if unknown => Some(NullBuffer::new_null(lists)),
            NeedleLayout::One => None,
            _ => needle_nulls,
        };
        let list_nulls = match (self.which, self.level.nulls()) {
            (NeedleLayout::Lists(needles), Some(nulls)) => {
                let each = (0..lists)
                    .flat_map(|i| std::iter::repeat_n(nulls.is_valid(i), needles.length(i)));
                Some(NullBuffer::from_iter(each))
            }
            (_, nulls) => nulls.cloned(),
        };
        let nulls = NullBuffer::union(list_nulls.as_ref(), needle_nulls.as_ref());
        Ok(Int64Array::try_new(positions.into(), nulls)?)
    }

    fn compare_numbers(&self, leaves: &ArrayRef, needles: &ArrayRef) -> Result<Int64Array> {
        let nulls = needles.logical_nulls();
        let unknown = |t: &DataType| {
            Err(Error::type_of(
                "searchsorted",
                "integers or floats of up to 64 bits (cast the values first)",
                t,
            ))
        };
        let (a, b) = (NumberReader::new(leaves), NumberReader::new(needles));
        let leaf_nulls = leaves.nulls();
        let valid = |i| leaf_nulls.is_none_or(|n| n.is_valid(i));
        match (a, b) {
            (None, _) => unknown(leaves.data_type()),
            (_, None) => unknown(needles.data_type()),
            (Some(NumberReader::Int(a)), Some(NumberReader::Int(b))) => {
                self.run(nulls, |i, j| if valid(i) { a(i).cmp(&b(j)) } else { Ordering::Greater })
            }
            (Some(a), Some(b)) => {
                let (a, b) = (a.into_floats(), b.into_floats());
                self.run(nulls, |i, j| {
                    if valid(i) { compare_nan_last(a(i), b(j)) } else { Ordering::Greater }
                })
            }
        }
    }
}

/// Compares by value; NaN equals NaN and is greater than any number.
fn compare_nan_last(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

type NumberGetter<'a, T> = Box<dyn Fn(usize) -> T + 'a>;

enum NumberReader<'a> {
    Int(NumberGetter<'a, i128>),
    Float(NumberGetter<'a, f64>),
}

impl<'a> NumberReader<'a> {
    fn new(values: &'a ArrayRef) -> Option<Self> {
        fn read_ints<'a, T: ArrowPrimitiveType>(a: &'a PrimitiveArray<T>) -> NumberReader<'a>
        where
            T::Native: Into<i128>,
        {
            let v = a.values();
            NumberReader::Int(Box::new(move |i| v[i].into()))
        }
        fn read_floats<'a, T: ArrowPrimitiveType>(a: &'a PrimitiveArray<T>) -> NumberReader<'a>
        where
            T::Native: Into<f64>,
        {
            let v = a.values();
            NumberReader::Float(Box::new(move |i| v[i].into()))
        }
        Some(match values.data_type() {
            DataType::Int8 => read_ints(values.as_primitive::<Int8Type>()),
            DataType::Int16 => read_ints(values.as_primitive::<Int16Type>()),
            DataType::Int32 => read_ints(values.as_primitive::<Int32Type>()),
            DataType::Int64 => read_ints(values.as_primitive::<Int64Type>()),
            DataType::UInt8 => read_ints(values.as_primitive::<UInt8Type>()),
            DataType::UInt16 => read_ints(values.as_primitive::<UInt16Type>()),
            DataType::UInt32 => read_ints(values.as_primitive::<UInt32Type>()),
            DataType::UInt64 => read_ints(values.as_primitive::<UInt64Type>()),
            DataType::Float16 => read_floats(values.as_primitive::<Float16Type>()),
            DataType::Float32 => read_floats(values.as_primitive::<Float32Type>()),
            DataType::Float64 => read_floats(values.as_primitive::<Float64Type>()),
            _ => return None,
        })
    }

    fn into_floats(self) -> NumberGetter<'a, f64> {
        match self {
            #[expect(
                clippy::cast_precision_loss,
                reason = "an integer compares with a float as a float"
            )]
            Self::Int(get) => Box::new(move |i| get(i) as f64),
            Self::Float(get) => get,
        }
    }
}
