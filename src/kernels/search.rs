//! Places in sorted lists.

use std::cmp::Ordering;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, Datum, Int64Array, PrimitiveArray,
    make_comparator,
};
use arrow::buffer::NullBuffer;
use arrow::compute::{SortOptions, cast};
use arrow::datatypes::{
    DataType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};

use crate::array::{ListAxis, RaggedArray};
use crate::error::{Error, Result};

/// Which place among equal elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Side {
    /// Before them: the number of elements less than the needle.
    #[default]
    Left,
    /// Behind them: the number of elements not greater than the needle.
    Right,
}

/// For every row, where in its list, sorted ascending, the needle belongs: a number from 0 to the
/// length of the list, as numpy's `searchsorted` gives it.
///
/// `needles` is one value for all rows or one per row. Numbers of different types compare by value
/// (an integer with a float as floats), times of different units exactly; a text needle is read as
/// a time when the lists hold times. NaN sorts behind all numbers, null elements behind NaN; a null
/// row or a null needle gives null. A list that is not sorted gives some place within it.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow::array::{Array, Int32Array};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::search::{Side, searchsorted};
/// // [[10, 20, 20, 30], [], [5]]
/// let leaves = Arc::new(Int32Array::from(vec![10, 20, 20, 30, 5]));
/// let a = RaggedArray::try_new(3, vec![Offsets::from_lengths([4, 0, 1])?.into()], leaves)?;
/// let twenty = Int32Array::new_scalar(20);
/// assert_eq!(searchsorted(&a, &twenty, Side::Left)?.values(), &[1, 0, 1]);
/// assert_eq!(searchsorted(&a, &twenty, Side::Right)?.values(), &[3, 0, 1]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// When the array does not have exactly one level of lists, needles per row are not as many as the
/// rows, or the two types do not compare.
pub fn searchsorted(array: &RaggedArray, needles: &dyn Datum, side: Side) -> Result<Int64Array> {
    let [level] = array.axes() else {
        return Err(Error::invalid(format!(
            "searchsorted needs lists of one level, the array has {}; pick or flatten the others first",
            array.axes().len()
        )));
    };
    let (given, one) = needles.get();
    if !one && given.len() != array.len() {
        return Err(Error::invalid(format!(
            "searchsorted: {} needles for {} rows",
            given.len(),
            array.len()
        )));
    }
    let leaves = plain(array.leaves())?;
    let needles = plain(&arrow::array::make_array(given.to_data()))?;
    let find = Find { level, one, side };
    let (leaf, needle) = (leaves.data_type().clone(), needles.data_type().clone());
    if needle.is_null() || leaf.is_null() {
        return find.run(needles.logical_nulls(), |_, _| Ordering::Greater);
    }
    if leaf.is_numeric() && needle.is_numeric() && !decimal(&leaf) && !decimal(&needle) {
        return find.numbers(&leaves, &needles);
    }
    let no_match = || {
        Error::type_of(
            "the needle of searchsorted",
            format!("a value that compares with {leaf}"),
            &needle,
        )
    };
    let (leaves, needles) = if leaf == needle {
        (leaves, needles)
    } else {
        let exact = cast(&needles, &leaf).map_err(|_| no_match())?;
        if exact.logical_null_count() > needles.logical_null_count() {
            return Err(no_match());
        }
        let text = needle.is_string();
        if text || *cast(&exact, &needle).map_err(|_| no_match())? == *needles {
            (leaves, exact)
        } else {
            // The needle is finer than the elements: compare as fine as it is.
            (cast(&leaves, &needle).map_err(|_| no_match())?, needles)
        }
    };
    let options = SortOptions { descending: false, nulls_first: false };
    let compare = make_comparator(&leaves, &needles, options)?;
    find.run(needles.logical_nulls(), compare)
}

fn decimal(data_type: &DataType) -> bool {
    data_type.is_decimal()
}

/// Dictionaries and the like as plain values.
fn plain(values: &ArrayRef) -> Result<ArrayRef> {
    Ok(match values.data_type() {
        DataType::Dictionary(_, of) => cast(values, of)?,
        _ => values.clone(),
    })
}

struct Find<'a> {
    level: &'a ListAxis,
    one: bool,
    side: Side,
}

impl Find<'_> {
    /// One binary search per row; `compare` is given a leaf and a needle.
    fn run(
        &self,
        needle_nulls: Option<NullBuffer>,
        compare: impl Fn(usize, usize) -> Ordering,
    ) -> Result<Int64Array> {
        let layout = self.level.layout();
        let rows = layout.lists();
        let needle = |row| if self.one { 0 } else { row };
        let mut places = Vec::with_capacity(rows);
        for row in 0..rows {
            let range = layout.range(row);
            let (mut low, mut high) = (range.start, range.end);
            while low < high {
                let mid = low + (high - low) / 2;
                let before = match compare(mid, needle(row)) {
                    Ordering::Less => true,
                    Ordering::Equal => self.side == Side::Right,
                    Ordering::Greater => false,
                };
                if before { low = mid + 1 } else { high = mid }
            }
            places.push(i64::try_from(low - range.start).unwrap_or(i64::MAX));
        }
        let needle_nulls = match needle_nulls {
            Some(n) if self.one && n.null_count() > 0 => Some(NullBuffer::new_null(rows)),
            Some(_) if self.one => None,
            nulls => nulls,
        };
        let nulls = NullBuffer::union(self.level.nulls(), needle_nulls.as_ref());
        Ok(Int64Array::try_new(places.into(), nulls)?)
    }

    fn numbers(&self, leaves: &ArrayRef, needles: &ArrayRef) -> Result<Int64Array> {
        let nulls = needles.logical_nulls();
        let unknown = |t: &DataType| {
            Err(Error::type_of("searchsorted", "integers or floats of up to 64 bits", t))
        };
        let (a, b) = (Numbers::new(leaves), Numbers::new(needles));
        let leaf_nulls = leaves.nulls();
        let valid = |i| leaf_nulls.is_none_or(|n| n.is_valid(i));
        match (a, b) {
            (None, _) => unknown(leaves.data_type()),
            (_, None) => unknown(needles.data_type()),
            (Some(Numbers::Int(a)), Some(Numbers::Int(b))) => {
                self.run(nulls, |i, j| if valid(i) { a(i).cmp(&b(j)) } else { Ordering::Greater })
            }
            (Some(a), Some(b)) => {
                let (a, b) = (a.floats(), b.floats());
                self.run(
                    nulls,
                    |i, j| {
                        if valid(i) { nan_last(a(i), b(j)) } else { Ordering::Greater }
                    },
                )
            }
        }
    }
}

/// By value; NaN equals NaN and is greater than any number.
fn nan_last(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

type Get<'a, T> = Box<dyn Fn(usize) -> T + 'a>;

/// Access to numbers whatever their width.
enum Numbers<'a> {
    Int(Get<'a, i128>),
    Float(Get<'a, f64>),
}

impl<'a> Numbers<'a> {
    fn new(values: &'a ArrayRef) -> Option<Self> {
        fn ints<'a, T: ArrowPrimitiveType>(a: &'a PrimitiveArray<T>) -> Numbers<'a>
        where
            T::Native: Into<i128>,
        {
            let v = a.values();
            Numbers::Int(Box::new(move |i| v[i].into()))
        }
        fn floats<'a, T: ArrowPrimitiveType>(a: &'a PrimitiveArray<T>) -> Numbers<'a>
        where
            T::Native: Into<f64>,
        {
            let v = a.values();
            Numbers::Float(Box::new(move |i| v[i].into()))
        }
        Some(match values.data_type() {
            DataType::Int8 => ints(values.as_primitive::<Int8Type>()),
            DataType::Int16 => ints(values.as_primitive::<Int16Type>()),
            DataType::Int32 => ints(values.as_primitive::<Int32Type>()),
            DataType::Int64 => ints(values.as_primitive::<Int64Type>()),
            DataType::UInt8 => ints(values.as_primitive::<UInt8Type>()),
            DataType::UInt16 => ints(values.as_primitive::<UInt16Type>()),
            DataType::UInt32 => ints(values.as_primitive::<UInt32Type>()),
            DataType::UInt64 => ints(values.as_primitive::<UInt64Type>()),
            DataType::Float16 => floats(values.as_primitive::<Float16Type>()),
            DataType::Float32 => floats(values.as_primitive::<Float32Type>()),
            DataType::Float64 => floats(values.as_primitive::<Float64Type>()),
            _ => return None,
        })
    }

    fn floats(self) -> Get<'a, f64> {
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
