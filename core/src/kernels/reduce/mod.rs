//! Reductions of many values to one: along an axis, over whole rows, or across rows.
//!
//! Null leaves, and all values below null lists, are ignored. A null list gives null. Each
//! [`Reduction`] documents its result for an empty input and its treatment of NaN.
//!
//! | reduction | leaves | result | of an empty input |
//! |---|---|---|---|
//! | sum, product | Int8..64, Boolean | Int64 | 0, 1 |
//! | | UInt8..64 | UInt64 | 0, 1 |
//! | | Float16, Float32 (computed in 64 bits) | Float32 | 0, 1 |
//! | | Float64 | Float64 | 0, 1 |
//! | | Duration (sum only) | Duration | 0 |
//! | mean, median, quantile, variance, standard deviation | integers, Boolean | Float64 | null |
//! | | Float16, Float32 (computed in 64 bits) | Float32 | null |
//! | | Float64 | Float64 | null |
//! | mean, median, quantile | Duration | Duration, rounded to its unit | null |
//! | minimum, maximum, mode | any comparable type: numbers, booleans, times, strings | as the leaves | null |
//! | first, last | any type | as the leaves | null |
//! | index of minimum, of maximum | any comparable type | Int64 | null |
//! | count, size, number of distinct values | any type | Int64 | 0 |
//! | any, all | Boolean; numbers are true unless zero | Boolean | false, true |
//!
//! Dictionaries reduce like their values; first and last stay dictionaries. Integer overflow is an
//! error.

mod any_all;
mod block;
mod distinct;
// Without the feature `sql`, the functions that add up the sums of several batches are not used.
#[cfg_attr(not(feature = "sql"), allow(dead_code, unused_imports, unreachable_pub))]
pub(crate) mod exact_sums;
mod fold;
mod groups;
mod masked;
mod mode;
mod numbers;
mod outer;
mod pick;
pub(crate) mod quantile;
#[cfg(target_arch = "x86_64")]
mod registers;
pub(crate) mod rounded;
mod segments;
mod stacked_runs;
mod variance;

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int64Array};
use arrow::compute::cast;
use arrow::datatypes::DataType;

use super::bits::RankedBitmap;
use super::levels::merge_all_levels;
use crate::array::nulls::find_validity;
use crate::array::{Layout, ListAxis, RaggedArray, resolve_axis};
use crate::error::{Error, Result};
use groups::LeafGroups;

pub use masked::reduce_where;
pub use quantile::{quantile, quantiles};

/// Reduction of many values to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// Sum; 0 for an empty input. NaN propagates.
    Sum,
    /// Product; 1 for an empty input. NaN propagates.
    Prod,
    /// Arithmetic mean; null for an empty input. NaN propagates. The mean of durations is computed
    /// exactly, then rounded to their unit, halves away from zero.
    Mean,
    /// Smallest value; NaN if any value is NaN, 0.0 instead of -0.0, null for an empty input.
    Min,
    /// Largest value; NaN if any value is NaN, 0.0 instead of -0.0, null for an empty input.
    Max,
    /// Number of valid leaves.
    Count,
    /// Number of leaves, including nulls.
    Size,
    /// Whether any leaf is true; numbers are true unless they are zero. False for an empty input.
    Any,
    /// Whether all leaves are true; numbers are true unless they are zero. True for an empty input.
    All,
    /// Variance: the sum of the squared distances from the mean, divided by `n - ddof`. `ddof` is 0
    /// for a whole population (the default of NumPy) and 1 for a sample (`stddev` and `var` in
    /// SQL). Null if there are at most `ddof` values. NaN propagates.
    Var {
        /// Delta degrees of freedom: the divisor is `n - ddof`.
        ddof: u32,
    },
    /// Standard deviation: the square root of the [variance](Self::Var).
    Std {
        /// Delta degrees of freedom: the divisor is `n - ddof`.
        ddof: u32,
    },
    /// Middle value, or the mean of the two middle values; null for an empty input. NaN propagates.
    /// The median of durations is computed exactly, then rounded to their unit, halves up.
    Median,
    /// Index of the smallest value along the axis, or among the leaves of a row. Null leaves have
    /// an index, but are not compared. If there are NaN, the index of the first NaN; if several
    /// values are smallest, the index of the first of them. Null for an empty input.
    ArgMin,
    /// Index of the largest value; otherwise like [`ArgMin`](Self::ArgMin).
    ArgMax,
    /// First valid value; null if there is none.
    First,
    /// Last valid value; null if there is none.
    Last,
    /// Number of distinct valid values. All NaN count as one value, and so do both zeros.
    Nunique,
    /// Most frequent value; if several are equally frequent, the smallest of them. Null for an
    /// empty input. All NaN count as one value that is greater than any number, and both zeros as
    /// one value.
    Mode,
}

impl Reduction {
    /// Returns the name used in error messages: `sum`, `mean`, ...
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::kernels::reduce::Reduction;
    /// assert_eq!(Reduction::Sum.name(), "sum");
    /// ```
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
            Self::Mode => "mode",
        }
    }

    /// Returns the type of the result for leaves of type `leaf` (see the table in the
    /// [module](self)).
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use arrow::datatypes::DataType;
    /// use serrate::kernels::reduce::Reduction;
    /// assert_eq!(Reduction::Mean.output_type(&DataType::Int32)?, DataType::Float64);
    /// assert!(Reduction::Mean.output_type(&DataType::Utf8).is_err());
    /// assert_eq!(Reduction::Mean.name(), "mean");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If leaves of this type do not support the reduction.
    pub fn output_type(self, leaf: &DataType) -> Result<DataType> {
        use DataType::{Boolean, Duration, Float16, Float32, Float64, Int64, Null, UInt64};
        if matches!(self, Self::First | Self::Last) {
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
            (Self::Min | Self::Max | Self::Mode, t) if !t.is_nested() => t.clone(),
            (Self::ArgMin | Self::ArgMax | Self::Nunique, t) if !t.is_nested() => Int64,
            (Self::Any | Self::All, _) if integers || leaf.is_floating() => Boolean,
            (Self::Sum | Self::Prod, _) if leaf.is_unsigned_integer() => UInt64,
            (Self::Sum | Self::Prod, _) if integers => Int64,
            (Self::Sum | Self::Prod, Float16 | Float32) => Float32,
            (Self::Sum | Self::Prod, Float64) => Float64,
            (Self::Sum | Self::Mean | Self::Median, Duration(_)) => leaf.clone(),
            _ if average && integers => Float64,
            (_, Float16 | Float32) if average => Float32,
            (_, Float64) if average => Float64,
            _ => {
                let expected = match self {
                    Self::Sum => "numbers, booleans or durations (cast decimals to float64)",
                    Self::Any | Self::All => {
                        "booleans or numbers (compare or cast the values first)"
                    }
                    Self::Prod => "numbers or booleans (cast other types to float64 or int64)",
                    Self::Mean | Self::Median => {
                        "numbers, booleans or durations (cast other types to float64 or int64)"
                    }
                    _ if average => "numbers or booleans (cast other types to float64 or int64)",
                    _ => "scalars, not lists or structs (select a field of structs first)",
                };
                return Err(Error::type_of(self.name(), expected, leaf));
            }
        })
    }
}

/// Reduces along `axis` (negative axes count from the innermost), or each row to one value if it is
/// `None`.
///
/// * `None`: a flat array, one value per row over all its leaves; null for a null row.
/// * The innermost axis: each list becomes a value (null for a null list); outer levels are shared.
/// * An outer axis: the elements of each list are themselves lists. Their first elements are
///   reduced to the first element of the result, their second elements to the second, and so on.
///   Deeper lists are reduced index by index in the same way. A list that is too short for an index
///   is skipped there, so the result is a list as long as the longest of these lists. A null list
///   gives a null list, an empty list an empty list.
/// * Axis 0: the rows are reduced in the same way as the elements of a list on an outer axis. The
///   elements of axis 1 become the rows of the result; a flat array gives one row with one value.
///
/// ```
/// # use serrate_core as serrate;
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
/// assert_eq!(reduce(&a, Reduction::Count, Some(0))?.shape(), [Some(2), None]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the array has no such axis, the leaves do not support the reduction, or an integer overflows
/// 64 bits.
pub fn reduce(array: &RaggedArray, how: Reduction, axis: Option<i64>) -> Result<RaggedArray> {
    let out = how.output_type(array.leaf_type())?;
    let target = ReduceTarget::new(array, how, axis)?;
    let (leaves, task) = (target.leaves(), &target.task);
    let found = match how {
        Reduction::Sum => numbers::reduce_sum(leaves, task),
        Reduction::Prod => numbers::compute_product(leaves, task),
        Reduction::Mean => numbers::reduce_mean(leaves, task),
        Reduction::Min | Reduction::Max => numbers::compute_min_max(leaves, task),
        Reduction::Count | Reduction::Size => count_leaves(leaves, task),
        Reduction::Any | Reduction::All => any_all::reduce_any_all(leaves, task),
        Reduction::Var { .. } | Reduction::Std { .. } => variance::reduce_variance(leaves, task),
        Reduction::Median => quantile::compute_quantile(leaves, task, 0.5),
        Reduction::ArgMin | Reduction::ArgMax => pick::find_extremes(leaves, task),
        Reduction::First | Reduction::Last => pick::pick_first_last(leaves, task),
        Reduction::Nunique => distinct::reduce_nunique(leaves, task),
        Reduction::Mode => mode::reduce_mode(leaves, task),
    }?;
    target.wrap_result(if *found.data_type() == out { found } else { cast(&found, &out)? })
}

/// Reduces all leaves of all rows to one value, and returns it as a flat array of one row.
///
/// Null leaves are ignored. Without leaves, the value is the result for an empty input (see the
/// table in the [module](self)).
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{Int32Array, Int64Array};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::reduce::{Reduction, total};
/// // [[1, 2], [3]]
/// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([2, 1])?.into()], leaves)?;
/// let sum = total(&a, Reduction::Sum)?;
/// assert_eq!(sum.leaves().as_ref(), &Int64Array::from(vec![6]));
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// Same as [`reduce`].
pub fn total(array: &RaggedArray, how: Reduction) -> Result<RaggedArray> {
    let leaves = array.leaves().clone();
    reduce(&RaggedArray::try_new(leaves.len(), Vec::new(), leaves)?, how, Some(0))
}

macro_rules! shortcuts {
    ($($name:ident: $how:ident, $is:literal;)*) => {$(
        #[doc = concat!("Reduces to ", $is, "; see [`reduce`].")]
        ///
        /// A null list gives null; the table of the [module](self) says what an empty list gives.
        ///
        /// # Errors
        /// Same as [`reduce`].
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
    count: Count, "the [number of valid leaves](Reduction::Count)";
    size: Size, "the [number of leaves](Reduction::Size)";
    any: Any, "whether [any](Reduction::Any) is true";
    all: All, "whether [all](Reduction::All) are true";
    median: Median, "the [median](Reduction::Median)";
    argmin: ArgMin, "the [index of the minimum](Reduction::ArgMin)";
    argmax: ArgMax, "the [index of the maximum](Reduction::ArgMax)";
    first: First, "the [first](Reduction::First) value";
    last: Last, "the [last](Reduction::Last) value";
    nunique: Nunique, "the [number of distinct values](Reduction::Nunique)";
    mode: Mode, "the [most frequent value](Reduction::Mode)";
}

/// Returns the [variance](Reduction::Var) along `axis`, or per row if `axis` is `None`.
///
/// Null leaves are ignored; a list with at most `ddof` values, and a null list, gives null.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::Float64Array;
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::reduce::var;
/// // [[1, 3], [5]]: the variance of a sample of one is null
/// let leaves = Arc::new(Float64Array::from(vec![1., 3., 5.]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([2, 1])?.into()], leaves)?;
/// let found = var(&a, Some(1), 1)?;
/// assert_eq!(found.leaves().as_ref(), &Float64Array::from(vec![Some(2.), None]));
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// Same as [`reduce`].
pub fn var(array: &RaggedArray, axis: Option<i64>, ddof: u32) -> Result<RaggedArray> {
    reduce(array, Reduction::Var { ddof }, axis)
}

/// Returns the [standard deviation](Reduction::Std) along `axis`, or per row if `axis` is `None`.
///
/// Null leaves are ignored; a list with at most `ddof` values, and a null list, gives null.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::Float64Array;
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::reduce::std;
/// // [[1, 3], [5]]
/// let leaves = Arc::new(Float64Array::from(vec![1., 3., 5.]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([2, 1])?.into()], leaves)?;
/// let found = std(&a, Some(1), 0)?;
/// assert_eq!(found.leaves().as_ref(), &Float64Array::from(vec![1., 0.]));
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// Same as [`reduce`].
pub fn std(array: &RaggedArray, axis: Option<i64>, ddof: u32) -> Result<RaggedArray> {
    reduce(array, Reduction::Std { ddof }, axis)
}

struct ReduceTask {
    how: Reduction,
    groups: LeafGroups,
    axis: usize,
}

impl ReduceTask {
    fn describe_result(&self, result: usize) -> String {
        let (how, axis) = (self.how.name(), self.axis);
        match &self.groups {
            LeafGroups::Lists(_) if axis > 0 => format!("{how} of list {result} of axis {axis}"),
            _ => format!("{how} along axis {axis}, element {result} of the result"),
        }
    }
}

struct ReduceTarget<'a> {
    array: Cow<'a, RaggedArray>,
    axes: Vec<ListAxis>,
    /// Whether all rows were wrapped in one list, so that axis 0 can be reduced like an axis of
    /// lists.
    wrapped: bool,
    task: ReduceTask,
}

impl<'a> ReduceTarget<'a> {
    fn new(array: &'a RaggedArray, how: Reduction, axis: Option<i64>) -> Result<Self> {
        let leaves = || array.leaves().clone();
        let (array, named) = match axis {
            Some(axis) => (Cow::Borrowed(array), resolve_axis(axis, array.ndim(), "the array")?),
            None => {
                let each = || Layout::Uniform { size: 1, lists: array.len() }.into();
                let lists = merge_all_levels(array)?.unwrap_or_else(each);
                (Cow::Owned(RaggedArray::try_new(array.len(), vec![lists], leaves())?), 1)
            }
        };
        let wrapped = named == 0;
        let (array, axis) = if wrapped {
            let (rows, mut axes, leaves) = array.into_owned().into_parts();
            axes.insert(0, Layout::Uniform { size: rows, lists: 1 }.into());
            (Cow::Owned(RaggedArray::try_new(1, axes, leaves)?), 1)
        } else {
            (array, named)
        };
        let (axes, groups) = if axis == array.axes().len() {
            (array.axes()[..axis - 1].to_vec(), LeafGroups::Lists(array.axis(axis)?.clone()))
        } else {
            let (axes, stacked) = outer::stack_lists(&array, axis)?;
            (axes, LeafGroups::Stacked(stacked))
        };
        let unpacked = match array.leaf_type() {
            DataType::Dictionary(_, values) if reduces_dictionary_values(how) => {
                Some(cast(array.leaves(), values)?)
            }
            _ => None,
        };
        let array = match unpacked {
            Some(leaves) => Cow::Owned(array.with_leaves(leaves)?),
            None => array,
        };
        Ok(Self { array, axes, wrapped, task: ReduceTask { how, groups, axis: named } })
    }

    fn leaves(&self) -> &ArrayRef {
        self.array.leaves()
    }

    fn wrap_result(self, values: ArrayRef) -> Result<RaggedArray> {
        let axes = self.axes.clone();
        self.finish(axes, values)
    }

    fn build_result(self, level: ListAxis, values: ArrayRef) -> Result<RaggedArray> {
        let mut axes = self.axes.clone();
        axes.push(level);
        self.finish(axes, values)
    }

    fn finish(self, axes: Vec<ListAxis>, values: ArrayRef) -> Result<RaggedArray> {
        // If axis 0 was reduced, the result is in one list, which wrapped the rows. Unwrap this
        // list, except if the array was flat: then the result is one row with one value.
        let rows_below = self.wrapped && !self.axes.is_empty();
        let found = RaggedArray::try_new(self.array.len(), axes, values)?;
        if rows_below { found.inner(1) } else { Ok(found) }
    }
}

/// The groups of leaves along an axis. The leaves of a group keep the order of the axis.
pub(in crate::kernels) enum AxisGroups {
    Lists(Layout),
    /// For an outer axis, whose elements are lists: the leaves at the same index in these lists are
    /// a group. `[[a, b], [c]]` has the groups `a, c` and `b`.
    Stacked(outer::StackedLists),
}

pub(in crate::kernels) fn group_along_axis(array: &RaggedArray, axis: i64) -> Result<AxisGroups> {
    Ok(match ReduceTarget::new(array, Reduction::Size, Some(axis))?.task.groups {
        LeafGroups::Lists(level) => AxisGroups::Lists(level.layout().clone()),
        LeafGroups::Stacked(stacked) => AxisGroups::Stacked(stacked),
    })
}

fn reduces_dictionary_values(how: Reduction) -> bool {
    use Reduction::{Count, First, Last, Nunique, Size};
    !matches!(how, Count | First | Last | Nunique | Size)
}

fn count_leaves(leaves: &ArrayRef, task: &ReduceTask) -> Result<ArrayRef> {
    let nulls = find_validity(leaves);
    let valid = match task.how {
        Reduction::Count => nulls.map(|n| RankedBitmap::new(n.inner())),
        _ => None,
    };
    let counts = task.groups.count_group_values(valid.as_ref());
    let counts = counts.into_iter().map(|n| i64::try_from(n).unwrap_or(i64::MAX));
    Ok(Arc::new(Int64Array::try_new(counts.collect(), task.groups.nulls().cloned())?))
}
