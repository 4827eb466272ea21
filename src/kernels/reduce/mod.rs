//! One value of many: along an axis, of whole rows, or across rows.
//!
//! Null leaves, and everything below null lists, do not count. A null list gives null. What nothing
//! gives, and what NaN does, is said at each [`Reduction`].
//!
//! | reduction | leaves | result | of nothing |
//! |---|---|---|---|
//! | sum, product | Int8..64, Boolean | Int64 | 0, 1 |
//! | | UInt8..64 | UInt64 | 0, 1 |
//! | | Float16, Float32 (computed in 64 bits) | Float32 | 0, 1 |
//! | | Float64 | Float64 | 0, 1 |
//! | | Duration (sum only) | Duration | 0 |
//! | mean, median, quantile, variance, standard deviation | integers, Boolean | Float64 | null |
//! | | Float16, Float32 (computed in 64 bits) | Float32 | null |
//! | | Float64 | Float64 | null |
//! | minimum, maximum | anything that compares: numbers, truth, times, texts | as the leaves | null |
//! | first, last | anything | as the leaves | null |
//! | positions of minimum, maximum | anything that compares | Int64 | null |
//! | count, size, number of different values | anything | Int64 | 0 |
//! | any, all | Boolean; numbers are true unless zero | Boolean | false, true |
//!
//! Dictionaries reduce as their values; first and last stay dictionaries. Integer results that do not
//! fit 64 bits are an error.

mod block;
#[cfg(target_arch = "x86_64")]
mod blocks;
mod distinct;
// Only the aggregates of SQL add up over batches.
#[cfg(feature = "sql")]
mod exact;
mod fold;
mod groups;
mod masked;
mod numbers;
mod outer;
mod pick;
mod quantile;
#[cfg(target_arch = "x86_64")]
mod registers;
mod runs;
mod segments;
mod spread;
mod truth;

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int64Array};
use arrow::compute::cast;
use arrow::datatypes::DataType;

use super::bits::Rank;
use super::reshape::leaf_lists;
use crate::array::{Layout, ListAxis, RaggedArray, resolve_axis};
use crate::error::{Error, Result};
use groups::Groups;

#[cfg(feature = "sql")]
pub(crate) use exact::{Exact, ExactSums, Terms, Whole};
pub use masked::reduce_where;
pub(in crate::kernels) use numbers::{native_int, reinterpret};
pub use quantile::{quantile, quantiles};

/// What to make of many values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// Sum; 0 of nothing. NaN makes NaN.
    Sum,
    /// Product; 1 of nothing. NaN makes NaN.
    Prod,
    /// Arithmetic mean; null of nothing. NaN makes NaN.
    Mean,
    /// Smallest value, NaN if there is one, 0.0 for either zero; null of nothing.
    Min,
    /// Largest value, NaN if there is one, 0.0 for either zero; null of nothing.
    Max,
    /// Number of leaves that are not null.
    Count,
    /// Number of leaves, null or not.
    Size,
    /// Whether any leaf is true; numbers are true unless they are zero. False of nothing.
    Any,
    /// Whether all leaves are true; numbers are true unless they are zero. True of nothing.
    All,
    /// Variance: the squared distances from the mean, added up and divided by their number less `ddof`.
    ///
    /// `ddof` is 0 for what is all there is, as numpy does unless told, and 1 for a sample, as `stddev`
    /// and `var` do in SQL. Null of no more than `ddof` values. NaN makes NaN.
    Var {
        /// What the number of values is lessened by.
        ddof: u32,
    },
    /// Standard deviation: the root of the [variance](Self::Var).
    Std {
        /// What the number of values is lessened by.
        ddof: u32,
    },
    /// The value in the middle, or the mean of the two there; null of nothing. NaN makes NaN.
    Median,
    /// Where the smallest value is, counted from 0 along the axis (null elements take up a place), or
    /// among all leaves of a row: the first of several, and a NaN if there is one. Null of nothing.
    ArgMin,
    /// Where the largest value is; as [`ArgMin`](Self::ArgMin).
    ArgMax,
    /// The first value that is not null; null of nothing.
    First,
    /// The last value that is not null; null of nothing.
    Last,
    /// Number of different values that are not null. NaN is one value, and so is zero.
    Nunique,
}

impl Reduction {
    /// Name as in an error: `sum`, `mean`, ...
    pub fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Prod => "prod",
            Self::Mean => "mean",
            Self::Min => "min",
            Self::Max => "max",
            Self::Count => "count",
            Self::Size => "size",
            Self::Any => "any",
            Self::All => "all",
            Self::Var { .. } => "var",
            Self::Std { .. } => "std",
            Self::Median => "median",
            Self::ArgMin => "argmin",
            Self::ArgMax => "argmax",
            Self::First => "first",
            Self::Last => "last",
            Self::Nunique => "nunique",
        }
    }

    /// Type of the result over leaves of a type (see the [module](self) for the table).
    ///
    /// # Errors
    /// When such leaves cannot be reduced this way.
    pub fn output_type(self, leaf: &DataType) -> Result<DataType> {
        use DataType::{Boolean, Duration, Float16, Float32, Float64, Int64, Null, UInt64};
        if let (Self::First | Self::Last, _) = (self, leaf) {
            return Ok(leaf.clone());
        }
        if let DataType::Dictionary(_, values) = leaf {
            return self.output_type(values);
        }
        let integers = leaf.is_integer() || matches!(leaf, Boolean | Null);
        let average =
            matches!(self, Self::Mean | Self::Median | Self::Var { .. } | Self::Std { .. });
        Ok(match (self, leaf) {
            (Self::Count | Self::Size, _) => Int64,
            (Self::Min | Self::Max, t) if !t.is_nested() => t.clone(),
            (Self::ArgMin | Self::ArgMax | Self::Nunique, t) if !t.is_nested() => Int64,
            (Self::Any | Self::All, _) if integers || leaf.is_floating() => Boolean,
            (Self::Sum | Self::Prod, _) if leaf.is_unsigned_integer() => UInt64,
            (Self::Sum | Self::Prod, _) if integers => Int64,
            (Self::Sum | Self::Prod, Float16 | Float32) => Float32,
            (Self::Sum | Self::Prod, Float64) => Float64,
            (Self::Sum, Duration(_)) => leaf.clone(),
            _ if average && integers => Float64,
            (_, Float16 | Float32) if average => Float32,
            (_, Float64) if average => Float64,
            _ => {
                let expected = match self {
                    Self::Sum => "numbers, booleans or durations (cast decimals to float64)",
                    Self::Any | Self::All => "booleans or numbers",
                    Self::Prod => "numbers or booleans (cast others to float64 or int64)",
                    _ if average => "numbers or booleans (cast others to float64 or int64)",
                    _ => "flat values",
                };
                return Err(Error::type_of(self.name(), expected, leaf));
            }
        })
    }
}

/// Reduces along axis `axis` (negatives from the innermost), or every row to one value when it is
/// `None`.
///
/// * `None`: a flat array, one value per row, over all its leaves; null for a null row.
/// * The innermost axis: every innermost list becomes one value, null where it was null. Outer
///   levels are shared.
/// * An outer axis: the elements of each of its lists, lists themselves, are laid over one another
///   and reduced place by place. What an element does not have at a place does not count, so that
///   each resulting list is as long as the longest of its elements, on every deeper axis. A list
///   that is null gives a null one, an empty list an empty one.
/// * Axis 0: the rows are laid over one another in the same way. The elements of axis 1 of the result
///   are its rows; of a flat array there is one row, with one value.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow::array::{AsArray, Float32Array, types::Float32Type};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::reduce::{Reduction, reduce};
/// // one row: [[1, 2, 3], [10]]
/// let axes = vec![Offsets::from_lengths([2])?.into(), Offsets::from_lengths([3, 1])?.into()];
/// let a = RaggedArray::try_new(1, axes, Arc::new(Float32Array::from(vec![1., 2., 3., 10.])))?;
/// let values = |axis| -> serrate::Result<Vec<f32>> {
///     let sums = reduce(&a, Reduction::Sum, axis)?;
///     Ok(sums.leaves().as_primitive::<Float32Type>().values().to_vec())
/// };
/// assert_eq!(values(None)?, [16.]);
/// assert_eq!(values(Some(-1))?, [6., 10.]);
/// assert_eq!(values(Some(1))?, [11., 2., 3.]);
/// assert_eq!(reduce(&a, Reduction::Count, Some(0))?.shape(), [2, -1]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// When the array has no such axis, for leaves that cannot be reduced this way, and when an integer
/// result does not fit 64 bits.
pub fn reduce(array: &RaggedArray, how: Reduction, axis: Option<i64>) -> Result<RaggedArray> {
    let out = how.output_type(array.leaf_type())?;
    let target = Target::new(array, how, axis)?;
    let (leaves, task) = (target.leaves(), &target.task);
    let found = match how {
        Reduction::Sum => numbers::sum(leaves, task),
        Reduction::Prod => numbers::prod(leaves, task),
        Reduction::Mean => numbers::mean(leaves, task),
        Reduction::Min | Reduction::Max => numbers::extreme(leaves, task),
        Reduction::Count | Reduction::Size => counts(leaves, task),
        Reduction::Any | Reduction::All => truth::truth(leaves, task),
        Reduction::Var { .. } | Reduction::Std { .. } => spread::spread(leaves, task),
        Reduction::Median => quantile::one(leaves, task, 0.5),
        Reduction::ArgMin | Reduction::ArgMax => pick::position(leaves, task),
        Reduction::First | Reduction::Last => pick::end(leaves, task),
        Reduction::Nunique => distinct::nunique(leaves, task),
    }?;
    target.result(if *found.data_type() == out { found } else { cast(&found, &out)? })
}

/// Reduces all leaves of all rows to one value: a flat array of one row.
///
/// # Errors
/// As [`reduce`].
pub fn total(array: &RaggedArray, how: Reduction) -> Result<RaggedArray> {
    let leaves = array.leaves().clone();
    reduce(&RaggedArray::try_new(leaves.len(), Vec::new(), leaves)?, how, Some(0))
}

macro_rules! shortcuts {
    ($($name:ident: $how:ident, $is:literal;)*) => {$(
        #[doc = concat!("[`reduce`] to ", $is, ".")]
        ///
        /// # Errors
        /// As [`reduce`].
        pub fn $name(array: &RaggedArray, axis: Option<i64>) -> Result<RaggedArray> {
            reduce(array, Reduction::$how, axis)
        }
    )*};
}

shortcuts! {
    sum: Sum, "the [sum](Reduction::Sum)";
    prod: Prod, "the [product](Reduction::Prod)";
    mean: Mean, "the [mean](Reduction::Mean)";
    min: Min, "the [minimum](Reduction::Min)";
    max: Max, "the [maximum](Reduction::Max)";
    count: Count, "the [number of leaves that are not null](Reduction::Count)";
    size: Size, "the [number of leaves](Reduction::Size)";
    any: Any, "whether [any](Reduction::Any) is true";
    all: All, "whether [all](Reduction::All) are true";
    median: Median, "the [median](Reduction::Median)";
    argmin: ArgMin, "the [position of the minimum](Reduction::ArgMin)";
    argmax: ArgMax, "the [position of the maximum](Reduction::ArgMax)";
    first: First, "the [first](Reduction::First) value";
    last: Last, "the [last](Reduction::Last) value";
    nunique: Nunique, "the [number of different values](Reduction::Nunique)";
}

/// [`reduce`] to the [variance](Reduction::Var).
///
/// # Errors
/// As [`reduce`].
pub fn var(array: &RaggedArray, axis: Option<i64>, ddof: u32) -> Result<RaggedArray> {
    reduce(array, Reduction::Var { ddof }, axis)
}

/// [`reduce`] to the [standard deviation](Reduction::Std).
///
/// # Errors
/// As [`reduce`].
pub fn std(array: &RaggedArray, axis: Option<i64>, ddof: u32) -> Result<RaggedArray> {
    reduce(array, Reduction::Std { ddof }, axis)
}

/// What is reduced, and how its leaves go together.
struct Task {
    how: Reduction,
    groups: Groups,
    axis: usize,
}

impl Task {
    /// Where a result is, for an error.
    fn place(&self, result: usize) -> String {
        let (how, axis) = (self.how.name(), self.axis);
        match &self.groups {
            Groups::Lists(_) if axis > 0 => format!("{how} of list {result} of axis {axis}"),
            _ => format!("{how} along axis {axis}, result {result}"),
        }
    }
}

/// An array, resolved to the axis that goes.
struct Target<'a> {
    array: Cow<'a, RaggedArray>,
    /// The levels above the results.
    axes: Vec<ListAxis>,
    /// Whether a level was put around the rows.
    around: bool,
    task: Task,
}

impl<'a> Target<'a> {
    fn new(array: &'a RaggedArray, how: Reduction, axis: Option<i64>) -> Result<Self> {
        let leaves = || array.leaves().clone();
        let (array, named) = match axis {
            Some(axis) => (Cow::Borrowed(array), resolve_axis(axis, array.ndim(), "the array")?),
            None => {
                let each = || Layout::Uniform { size: 1, lists: array.len() }.into();
                let lists = leaf_lists(array)?.unwrap_or_else(each);
                (Cow::Owned(RaggedArray::try_new(array.len(), vec![lists], leaves())?), 1)
            }
        };
        let around = named == 0;
        let (array, axis) = if around {
            let (rows, mut axes, leaves) = array.into_owned().into_parts();
            axes.insert(0, Layout::Uniform { size: rows, lists: 1 }.into());
            (Cow::Owned(RaggedArray::try_new(1, axes, leaves)?), 1)
        } else {
            (array, named)
        };
        let (axes, groups) = if axis == array.axes().len() {
            (array.axes()[..axis - 1].to_vec(), Groups::Lists(array.axis(axis)?.clone()))
        } else {
            let (axes, overlay) = outer::overlay(&array, axis)?;
            (axes, Groups::Overlay(overlay))
        };
        let unpacked = match array.leaf_type() {
            DataType::Dictionary(_, values) if unpacks(how) => Some(cast(array.leaves(), values)?),
            _ => None,
        };
        let array = match unpacked {
            Some(leaves) => Cow::Owned(array.with_leaves(leaves)?),
            None => array,
        };
        Ok(Self { array, axes, around, task: Task { how, groups, axis: named } })
    }

    fn leaves(&self) -> &ArrayRef {
        self.array.leaves()
    }

    fn result(self, values: ArrayRef) -> Result<RaggedArray> {
        let axes = self.axes.clone();
        self.finish(axes, values)
    }

    /// With one more level over the values.
    fn result_in(self, level: ListAxis, values: ArrayRef) -> Result<RaggedArray> {
        let mut axes = self.axes.clone();
        axes.push(level);
        self.finish(axes, values)
    }

    fn finish(self, axes: Vec<ListAxis>, values: ArrayRef) -> Result<RaggedArray> {
        // What is laid over one another below the rows becomes rows; one value stays one row.
        let rows_below = self.around && !self.axes.is_empty();
        let found = RaggedArray::try_new(self.array.len(), axes, values)?;
        if rows_below { found.inner(1) } else { Ok(found) }
    }
}

/// Which leaves follow each other along an axis.
pub(in crate::kernels) enum Places {
    /// Those of each list.
    Lists(Layout),
    /// Those at one place of lists that lie over one another.
    Overlay(outer::Overlay),
}

/// Which leaves follow each other along axis `axis` of an array.
pub(in crate::kernels) fn places(array: &RaggedArray, axis: i64) -> Result<Places> {
    Ok(match Target::new(array, Reduction::Size, Some(axis))?.task.groups {
        Groups::Lists(level) => Places::Lists(level.layout().clone()),
        Groups::Overlay(overlay) => Places::Overlay(overlay),
    })
}

/// Whether a dictionary is reduced as its values.
fn unpacks(how: Reduction) -> bool {
    use Reduction::{Count, First, Last, Nunique, Size};
    !matches!(how, Count | First | Last | Nunique | Size)
}

/// [`Reduction::Count`] and [`Reduction::Size`].
fn counts(leaves: &ArrayRef, task: &Task) -> Result<ArrayRef> {
    let nulls = leaves.logical_nulls().filter(|n| n.null_count() > 0);
    let valid = match task.how {
        Reduction::Count => nulls.map(|n| Rank::new(n.inner())),
        _ => None,
    };
    let counts = task.groups.counts(valid.as_ref());
    let counts = counts.into_iter().map(|n| i64::try_from(n).unwrap_or(i64::MAX));
    Ok(Arc::new(Int64Array::try_new(counts.collect(), task.groups.nulls().cloned())?))
}
