//! [`CallPlan`] checks the arguments of a call at planning, and [`BatchCall`] reads them once per
//! batch.

use std::cell::RefCell;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, new_empty_array};
use arrow::datatypes::{DataType, FieldRef, Int64Type};
use datafusion::common::ScalarValue;
use datafusion::common::config::ConfigOptions;
use datafusion::logical_expr::ColumnarValue;
use serrate_core::internal::cast_strictly;

use super::def::Def;
use super::lists::NestedListType;
use super::naming::write_literal;
use super::repeated_bytes::count_repeated_bytes;
use crate::array::{RaggedArray, list_depth};
use crate::error::{Error, Result};
use crate::kernels::RowArg;
use crate::memory::MemoryCharge;

pub(crate) struct CallPlan<'a> {
    def: &'a Def,
    fields: &'a [FieldRef],
    literals: &'a [Option<&'a ScalarValue>],
}

impl<'a> CallPlan<'a> {
    pub(crate) fn new(
        def: &'a Def,
        fields: &'a [FieldRef],
        literals: &'a [Option<&'a ScalarValue>],
    ) -> Self {
        Self { def, fields, literals }
    }

    pub(crate) fn len(&self) -> usize {
        self.fields.len()
    }

    pub(crate) fn name(&self) -> &'static str {
        self.def.name
    }

    pub(crate) fn check_arity(&self) -> Result<()> {
        check_arity(self.name(), self.def.arity, self.len(), self.def.doc.syntax)
    }

    pub(crate) fn data_type(&self, i: usize) -> &'a DataType {
        self.fields[i].data_type()
    }

    pub(crate) fn field(&self, i: usize) -> &'a FieldRef {
        &self.fields[i]
    }

    /// Whether argument `i` has the type Null: it is an untyped NULL, or a parameter of unknown
    /// type.
    pub(crate) fn is_untyped_null(&self, i: usize) -> bool {
        self.fields.get(i).is_some_and(|f| f.data_type().is_null())
    }

    pub(crate) fn has_list(&self) -> bool {
        self.fields.iter().any(|f| list_depth(f.data_type()) > 0)
    }

    pub(crate) fn refuse_call(&self, message: impl std::fmt::Display) -> Error {
        Error::invalid(format!("{}: {message}", self.name()))
    }

    pub(crate) fn require_lists(&self, i: usize) -> Result<NestedListType> {
        let found = self.data_type(i);
        match found {
            DataType::ListView(_) | DataType::LargeListView(_) => Err(self.refuse_call(format!(
                "argument {} is a {found}, which is not supported; cast it to List or LargeList with arrow_cast first",
                i + 1
            ))),
            DataType::Boolean => Err(self.refuse_call(format!(
                "argument {} must be a list (List, LargeList or FixedSizeList); it is Boolean. Operators such as = compare two lists as a whole; to compare their values, use ragged_eq(a, b), ragged_ne, ragged_lt, ragged_le, ragged_gt or ragged_ge. IS NULL tests a list as a whole; to test its values, use ragged_is_null(x)",
                i + 1
            ))),
            _ if list_depth(found) == 0 => Err(self.refuse_call(format!(
                "argument {} must be a list (List, LargeList or FixedSizeList); it is {found}",
                i + 1
            ))),
            _ => Ok(NestedListType::from_type(found)),
        }
    }

    /// Returns an error if `given`, the type of argument 2, has more levels of lists than `lists`,
    /// the type of argument 1. The error describes argument 2 as `what`, and its values as
    /// `values`.
    pub(crate) fn check_depth(
        &self,
        lists: &NestedListType,
        given: &NestedListType,
        what: &str,
        values: &str,
    ) -> Result<()> {
        if given.depth() <= lists.depth() {
            return Ok(());
        }
        Err(self.refuse_call(format!(
            "argument 2 ({what}) has {} levels of lists, but argument 1 has only {}; give {values} with at most as many levels as argument 1",
            given.depth(),
            lists.depth()
        )))
    }

    /// Returns the error for a first argument that is a list of values of the wrong type `leaf`.
    /// `must` describes the expected values. For decimals, the error suggests a cast.
    pub(crate) fn make_values_error(&self, must: impl std::fmt::Display, leaf: &DataType) -> Error {
        let hint = match leaf {
            t if t.is_decimal() => {
                format!("; cast decimals first: {}(ragged_cast(x, 'DOUBLE'))", self.name())
            }
            t => advise_numbers(t).to_owned(),
        };
        self.refuse_call(format!(
            "argument 1 must be a list of {must}; its values are {leaf}{hint}"
        ))
    }

    pub(crate) fn find_boolean_lists(&self, i: usize) -> Result<NestedListType> {
        let lists = self.require_lists(i)?;
        match lists.leaf() {
            DataType::Boolean | DataType::Null => Ok(lists),
            t => Err(self.refuse_call(format!(
                "argument {} must be a list of booleans; its values are {t}, so compare or cast them first",
                i + 1
            ))),
        }
    }

    /// Returns an error unless argument `i` has an integer type, is NULL, or is not given. `what`
    /// names the argument in the error.
    pub(crate) fn check_integer(&self, i: usize, what: &str) -> Result<()> {
        match self.fields.get(i).map(|f| f.data_type()) {
            None | Some(DataType::Null) => Ok(()),
            Some(t) if t.is_integer() => Ok(()),
            Some(t) => Err(self.refuse_call(format!(
                "argument {} ({what}) must be an integer; it is {t}, so cast it first",
                i + 1
            ))),
        }
    }

    /// Returns the literal argument `i`, or `None` if it is not given. Any other expression is an
    /// error; the message names the argument `what` and shows the example `such`.
    pub(crate) fn require_literal(
        &self,
        i: usize,
        what: &str,
        such: &str,
    ) -> Result<Option<&'a ScalarValue>> {
        match self.literals.get(i) {
            None => Ok(None),
            Some(Some(value)) => Ok(Some(value)),
            Some(None) => Err(self.refuse_call(format!(
                "argument {} ({what}) must be a literal such as {such}: a column, a parameter ($1) or a computed value is not known when the query is planned",
                i + 1
            ))),
        }
    }

    pub(crate) fn find_known_literal(&self, i: usize) -> Option<&'a ScalarValue> {
        self.literals.get(i).copied().flatten()
    }

    pub(crate) fn is_list_view(&self, i: usize) -> bool {
        matches!(self.data_type(i), DataType::ListView(_) | DataType::LargeListView(_))
    }

    pub(crate) fn is_zero_literal(&self, i: usize) -> bool {
        self.find_known_literal(i).and_then(find_integer).flatten() == Some(0)
    }

    /// Returns the integer literal in argument `i`, or `None` if the argument is NULL or not given.
    /// Any other argument is an error, as in [`require_literal`](Self::require_literal).
    pub(crate) fn find_literal_integer(
        &self,
        i: usize,
        what: &str,
        such: &str,
    ) -> Result<Option<i64>> {
        let Some(value) = self.require_literal(i, what, such)? else { return Ok(None) };
        match find_integer(value) {
            Some(n) => Ok(n),
            None => Err(self.refuse_call(format!(
                "argument {} ({what}) must be an integer such as {such}; it is {}",
                i + 1,
                write_found(value)
            ))),
        }
    }

    pub(crate) fn find_literal_text(
        &self,
        i: usize,
        what: &str,
        such: &str,
    ) -> Result<Option<&'a str>> {
        let Some(value) = self.require_literal(i, what, such)? else { return Ok(None) };
        match value.try_as_str() {
            Some(Some(text)) => Ok(Some(text)),
            _ => Err(self.refuse_call(format!(
                "argument {} ({what}) must be a string such as {such}; it is {}",
                i + 1,
                write_found(value)
            ))),
        }
    }

    /// Returns the axis of `lists` that the literal argument `i` names, counted from the outermost.
    /// Returns `None` if the argument is NULL or not given. Axis 0, the rows, is an error, whose
    /// message contains `across`: what to do instead.
    pub(crate) fn axis(
        &self,
        i: usize,
        lists: &NestedListType,
        across: &str,
    ) -> Result<Option<usize>> {
        let Some(axis) = self.find_literal_integer(i, "the axis", "1 or -1")? else {
            return Ok(None);
        };
        resolve_axis(self.name(), axis, lists.ndim(), across).map(Some)
    }
}

/// Returns an error unless `given`, the number of arguments of a call of `name`, is within `arity`.
/// The error shows the `syntax` of the function.
pub(super) fn check_arity(
    name: &str,
    arity: (usize, usize),
    given: usize,
    syntax: &[&str],
) -> Result<()> {
    let (least, most) = arity;
    if (least..=most).contains(&given) {
        return Ok(());
    }
    let arguments = match (least, most) {
        (1, 1) => "1 argument".to_owned(),
        (a, b) if a == b => format!("{a} arguments"),
        (a, super::def::ANY) => format!("{a} or more arguments"),
        (a, b) => format!("{a} to {b} arguments"),
    };
    let syntax = syntax.join(" or ");
    Err(Error::invalid(format!("{name} takes {arguments}, but found {given}; write {syntax}")))
}

/// Returns the end of an error message: how to get numbers from values of the type `leaf`.
pub(crate) fn advise_numbers(leaf: &DataType) -> &'static str {
    match leaf {
        t if t.is_nested() => {
            "; give scalars, such as one field of the structs: ragged_unzip(x, 'name')"
        }
        t if t.is_temporal() => "; cast them to integers first: ragged_cast(x, 'BIGINT')",
        _ => "; cast them to numbers first: ragged_cast(x, 'DOUBLE')",
    }
}

/// Returns the index of the list axis that `axis` names in an array of `ndim` axes; a negative
/// `axis` counts from the innermost. Axis 0, the rows, is an error, whose message contains
/// `across`: what to do instead.
fn resolve_axis(name: &str, axis: i64, ndim: usize, across: &str) -> Result<usize> {
    let lists = ndim.saturating_sub(1);
    let resolved = crate::array::resolve_axis(axis, ndim, name).map_err(|_| {
        Error::invalid(format!(
            "{name}: there is no axis {axis}; the argument has {ndim} axes: 0 (the rows) to {lists} (the innermost lists, also -1)"
        ))
    })?;
    match resolved {
        0 => Err(Error::invalid(format!(
            "{name}: axis {axis} is the rows, but a scalar function works within a row; {across}. The axes of this argument are 1 to {} or, from the innermost, -1 to -{}",
            ndim - 1,
            ndim - 1
        ))),
        axis => Ok(axis),
    }
}

/// Formats a literal for an error message. `ScalarValue` displays intervals and durations with
/// their internal fields, so they are formatted as SQL literals instead.
fn write_found(value: &ScalarValue) -> String {
    match value.data_type() {
        DataType::Interval(_) | DataType::Duration(_) => write_literal(value),
        _ => value.to_string(),
    }
}

/// Returns `Some(Some(n))` for an integer, `Some(None)` for NULL, and `None` for a value of another
/// type or an integer that does not fit 64 bits.
fn find_integer(value: &ScalarValue) -> Option<Option<i64>> {
    match value.data_type() {
        DataType::Null => Some(None),
        t if t.is_integer() && value.is_null() => Some(None),
        t if t.is_integer() => match value.cast_to(&DataType::Int64) {
            Ok(ScalarValue::Int64(Some(n))) => Some(Some(n)),
            _ => None,
        },
        _ => None,
    }
}

/// Argument of a call on one batch: one value for all rows, or one value per row.
pub(crate) enum BatchArg {
    One(ScalarValue),
    Each(RefCell<ArrayRef>),
}

impl From<ColumnarValue> for BatchArg {
    fn from(value: ColumnarValue) -> Self {
        match value {
            ColumnarValue::Scalar(value) => Self::One(value),
            ColumnarValue::Array(array) => Self::Each(RefCell::new(array)),
        }
    }
}

pub(crate) struct BatchCall<'a> {
    def: &'a Def,
    args: &'a [BatchArg],
    rows: usize,
    returns: &'a FieldRef,
    config: &'a Arc<ConfigOptions>,
}

impl<'a> BatchCall<'a> {
    pub(crate) fn new(
        def: &'a Def,
        args: &'a [BatchArg],
        rows: usize,
        returns: &'a FieldRef,
        config: &'a Arc<ConfigOptions>,
    ) -> Self {
        Self { def, args, rows, returns, config }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.def.name
    }

    pub(crate) fn len(&self) -> usize {
        self.args.len()
    }

    pub(crate) fn config(&self) -> &ConfigOptions {
        self.config
    }

    pub(crate) fn return_field(&self) -> &FieldRef {
        self.returns
    }

    pub(crate) fn return_type(&self) -> &DataType {
        self.returns.data_type()
    }

    /// Returns the value of argument `i`, or `None` if the argument has one value per row or is not
    /// given.
    pub(crate) fn find_constant(&self, i: usize) -> Option<&'a ScalarValue> {
        match self.args.get(i) {
            Some(BatchArg::One(s)) => Some(s),
            _ => None,
        }
    }

    pub(crate) fn read_array(&self, i: usize) -> Result<ArrayRef> {
        match &self.args[i] {
            BatchArg::Each(a) => Ok(Arc::clone(&a.borrow())),
            BatchArg::One(s) => self.repeat_constant(i, s),
        }
    }

    /// Returns a constant argument as an array with one value per row, or an error if the array
    /// would exceed the memory limit.
    fn repeat_constant(&self, i: usize, value: &ScalarValue) -> Result<ArrayRef> {
        let bytes = count_repeated_bytes(value).saturating_mul(self.rows);
        let charge = || {
            let (name, rows) = (self.name(), self.rows);
            let what = format!("{name}: argument {}, a constant repeated for {rows} rows,", i + 1);
            MemoryCharge::take(&what, bytes)
        };
        // An array of one row takes no more memory than the constant, so it is not checked.
        let _charge = (self.rows > 1 && bytes > 0).then(charge).transpose()?;
        Ok(value.to_array_of_size(self.rows)?)
    }

    pub(crate) fn find_array_type(&self, i: usize) -> DataType {
        match &self.args[i] {
            BatchArg::Each(a) => a.borrow().data_type().clone(),
            BatchArg::One(s) => s.data_type(),
        }
    }

    pub(crate) fn read_ragged(&self, i: usize) -> Result<RaggedArray> {
        RaggedArray::try_from_arrow(&self.read_array(i)?)
    }

    /// Like [`read_ragged`](Self::read_ragged), but moves the array out of the call, so that it can
    /// be changed in place.
    pub(crate) fn take_ragged(&self, i: usize) -> Result<RaggedArray> {
        match &self.args[i] {
            BatchArg::Each(a) => {
                let none = new_empty_array(a.borrow().data_type());
                RaggedArray::try_from_arrow(&a.replace(none))
            }
            BatchArg::One(_) => self.read_ragged(i),
        }
    }

    /// Returns the integer argument `i`: one value for all rows if it is a constant, else one value
    /// per row. An argument that is not given counts as NULL.
    pub(crate) fn read_row_arg(&self, i: usize) -> Result<RowArg> {
        match self.args.get(i) {
            None => Ok(RowArg::NONE),
            Some(BatchArg::One(s)) => match find_integer(s) {
                Some(n) => Ok(RowArg::All(n)),
                None => Err(self.make_overflow_error(i, s)),
            },
            Some(BatchArg::Each(a)) => Ok(RowArg::Each(self.cast_integers(i, &a.borrow())?)),
        }
    }

    fn cast_integers(&self, i: usize, array: &ArrayRef) -> Result<Int64Array> {
        let cast =
            cast_strictly(array, &DataType::Int64).map_err(|e| self.make_overflow_error(i, e))?;
        Ok(cast.as_primitive::<Int64Type>().clone())
    }

    fn make_overflow_error(&self, i: usize, what: impl std::fmt::Display) -> Error {
        Error::invalid(format!(
            "{}: argument {} does not fit a signed 64-bit integer: {what}; give a number from -2^63 to 2^63 - 1",
            self.name(),
            i + 1
        ))
    }

    /// Returns the integer literal that planning has required as argument `i`, or `None` if it is
    /// NULL or not given.
    pub(crate) fn read_integer(&self, i: usize) -> Option<i64> {
        self.find_constant(i).and_then(find_integer).flatten()
    }

    pub(crate) fn read_text(&self, i: usize) -> Option<&'a str> {
        self.find_constant(i).and_then(|s| s.try_as_str()).flatten()
    }

    pub(crate) fn to_lists(&self, result: &RaggedArray) -> Result<ArrayRef> {
        result.to_arrow_as(self.return_type())
    }
}
