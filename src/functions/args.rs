//! Arguments of a call: checked once when a query is planned ([`Plan`]), read once per batch
//! ([`Call`]).

use std::cell::RefCell;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, new_empty_array};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, FieldRef, Int64Type};
use datafusion::common::ScalarValue;
use datafusion::common::config::ConfigOptions;
use datafusion::logical_expr::ColumnarValue;

use super::def::Def;
use super::lists::Lists;
use crate::array::{RaggedArray, list_depth};
use crate::error::{Error, Result};
use crate::kernels::RowArg;

/// The arguments as they are known before any row is read: types, and the values of literals.
pub(crate) struct Plan<'a> {
    def: &'a Def,
    fields: &'a [FieldRef],
    literals: &'a [Option<&'a ScalarValue>],
}

impl<'a> Plan<'a> {
    pub(crate) fn new(
        def: &'a Def,
        fields: &'a [FieldRef],
        literals: &'a [Option<&'a ScalarValue>],
    ) -> Self {
        Self { def, fields, literals }
    }

    /// Number of arguments.
    pub(crate) fn len(&self) -> usize {
        self.fields.len()
    }

    /// Name of the function.
    pub(crate) fn name(&self) -> &'static str {
        self.def.name
    }

    /// Refuses a number of arguments that the function does not take.
    pub(crate) fn check_arity(&self) -> Result<()> {
        let (least, most) = self.def.arity;
        if (least..=most).contains(&self.len()) {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "{} takes {}; {} given. Write {}",
            self.name(),
            match (least, most) {
                (a, b) if a == b => format!("{a} argument(s)"),
                (a, super::def::ANY) => format!("{a} or more arguments"),
                (a, b) => format!("{a} to {b} arguments"),
            },
            self.len(),
            self.def.doc.syntax.join(" or ")
        )))
    }

    /// Type of an argument.
    pub(crate) fn data_type(&self, i: usize) -> &'a DataType {
        self.fields[i].data_type()
    }

    /// The field of an argument, with its metadata.
    pub(crate) fn field(&self, i: usize) -> &'a FieldRef {
        &self.fields[i]
    }

    /// Whether an argument is given and is a NULL without a type, or a parameter of unknown type.
    pub(crate) fn is_untyped_null(&self, i: usize) -> bool {
        self.fields.get(i).is_some_and(|f| f.data_type().is_null())
    }

    /// An error about one argument.
    pub(crate) fn refuse(&self, i: usize, message: impl std::fmt::Display) -> Error {
        Error::invalid(format!("{}: argument {} {message}", self.name(), i + 1))
    }

    /// An argument that must be a list, taken apart.
    pub(crate) fn lists(&self, i: usize) -> Result<Lists> {
        let found = self.data_type(i);
        match found {
            DataType::ListView(_) | DataType::LargeListView(_) => Err(self.refuse(
                i,
                format!("is a {found}; cast it to List or LargeList first, as arrow_cast does"),
            )),
            DataType::Boolean => Err(self.refuse(
                i,
                "must be a list (List, LargeList or FixedSizeList); it is Boolean. Where it is a comparison of two lists: the operators compare lists as wholes, ragged_eq(a, b), ragged_ne, ragged_lt, ragged_le, ragged_gt and ragged_ge value by value; IS NULL asks about a list as a whole, ragged_is_null(x) about its values",
            )),
            _ if list_depth(found) == 0 => Err(self.refuse(
                i,
                format!("must be a list (List, LargeList or FixedSizeList); it is {found}"),
            )),
            _ => Ok(Lists::of(found)),
        }
    }

    /// An error about the type of the values of argument 0: what they must be, and how they become it.
    pub(crate) fn refuse_values(&self, must: impl std::fmt::Display, leaf: &DataType) -> Error {
        let hint = match leaf {
            t if t.is_decimal() => {
                format!("; cast decimals first: {}(ragged_cast(x, 'DOUBLE'))", self.name())
            }
            _ => String::new(),
        };
        self.refuse(0, format!("must be a list of {must}; its values are {leaf}{hint}"))
    }

    /// An argument that must be a list of booleans.
    pub(crate) fn boolean_lists(&self, i: usize) -> Result<Lists> {
        let lists = self.lists(i)?;
        match lists.leaf() {
            DataType::Boolean | DataType::Null => Ok(lists),
            t => Err(self.refuse(i, format!("must be a list of booleans; its values are {t}"))),
        }
    }

    /// Refuses an argument that is no integer; it may be a column.
    pub(crate) fn integer(&self, i: usize, what: &str) -> Result<()> {
        match self.fields.get(i).map(|f| f.data_type()) {
            None | Some(DataType::Null) => Ok(()),
            Some(t) if t.is_integer() => Ok(()),
            Some(t) => Err(self.refuse(i, format!("({what}) must be an integer; it is {t}"))),
        }
    }

    /// The value of an argument that must be known now; `None` when it is not given.
    pub(crate) fn literal(
        &self,
        i: usize,
        what: &str,
        such: &str,
    ) -> Result<Option<&'a ScalarValue>> {
        match self.literals.get(i) {
            None => Ok(None),
            Some(Some(value)) => Ok(Some(value)),
            Some(None) => Err(self.refuse(
                i,
                format!(
                    "({what}) must be written out, such as {such}: a column, a parameter ($1) or a computation is not known when the query is planned"
                ),
            )),
        }
    }

    /// The value of an argument, if it is written out.
    pub(crate) fn known(&self, i: usize) -> Option<&'a ScalarValue> {
        self.literals.get(i).copied().flatten()
    }

    /// Whether an argument is one of the list types that are not taken.
    pub(crate) fn is_list_view(&self, i: usize) -> bool {
        matches!(self.data_type(i), DataType::ListView(_) | DataType::LargeListView(_))
    }

    /// Whether an argument is the literal 0.
    pub(crate) fn literal_is_zero(&self, i: usize) -> bool {
        self.known(i).and_then(integer_of).flatten() == Some(0)
    }

    /// As [`literal`](Self::literal), an integer; a NULL is as if not given.
    pub(crate) fn literal_integer(&self, i: usize, what: &str, such: &str) -> Result<Option<i64>> {
        let Some(value) = self.literal(i, what, such)? else { return Ok(None) };
        match integer_of(value) {
            Some(n) => Ok(n),
            None => Err(self
                .refuse(i, format!("({what}) must be an integer such as {such}; it is {value}"))),
        }
    }

    /// As [`literal`](Self::literal), a text.
    pub(crate) fn literal_text(&self, i: usize, what: &str, such: &str) -> Result<Option<&'a str>> {
        let Some(value) = self.literal(i, what, such)? else { return Ok(None) };
        match value.try_as_str() {
            Some(Some(text)) => Ok(Some(text)),
            _ => {
                Err(self
                    .refuse(i, format!("({what}) must be a text such as {such}; it is {value}")))
            }
        }
    }

    /// The axis an argument names, 1 or more; `None` when it is not given. Axis 0 is refused with
    /// `across`, what to do instead.
    pub(crate) fn axis(&self, i: usize, lists: &Lists, across: &str) -> Result<Option<usize>> {
        let Some(axis) = self.literal_integer(i, "the axis", "1 or -1")? else { return Ok(None) };
        resolve(self.name(), axis, lists.ndim(), across).map(Some)
    }
}

/// An axis of lists by number; the rows are refused with `across`, what to do instead.
fn resolve(name: &str, axis: i64, ndim: usize, across: &str) -> Result<usize> {
    let lists = ndim.saturating_sub(1);
    let resolved = crate::array::resolve_axis(axis, ndim, name).map_err(|_| {
        Error::invalid(format!(
            "{name}: there is no axis {axis}; its argument has {ndim} axes, of which 0 is the rows and 1 to {lists} (or, from the innermost, -1 to -{lists}) are lists"
        ))
    })?;
    match resolved {
        0 => Err(Error::invalid(format!(
            "{name}: axis {axis} is the rows, which a scalar function does not cross; {across}. The axes of this argument are 1 to {} or, from the innermost, -1 to -{}",
            ndim - 1,
            ndim - 1
        ))),
        axis => Ok(axis),
    }
}

/// The integer a value is: `None` for what is not one, `Some(None)` for a NULL.
fn integer_of(value: &ScalarValue) -> Option<Option<i64>> {
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

/// An argument of one batch.
pub(crate) enum Arg {
    /// The same for all rows.
    One(ScalarValue),
    /// A value per row.
    Each(RefCell<ArrayRef>),
}

impl From<ColumnarValue> for Arg {
    fn from(value: ColumnarValue) -> Self {
        match value {
            ColumnarValue::Scalar(value) => Self::One(value),
            ColumnarValue::Array(array) => Self::Each(RefCell::new(array)),
        }
    }
}

/// The arguments of one batch.
pub(crate) struct Call<'a> {
    def: &'a Def,
    args: &'a [Arg],
    rows: usize,
    returns: &'a FieldRef,
    config: &'a Arc<ConfigOptions>,
}

impl<'a> Call<'a> {
    pub(crate) fn new(
        def: &'a Def,
        args: &'a [Arg],
        rows: usize,
        returns: &'a FieldRef,
        config: &'a Arc<ConfigOptions>,
    ) -> Self {
        Self { def, args, rows, returns, config }
    }

    /// Name of the function.
    pub(crate) fn name(&self) -> &'static str {
        self.def.name
    }

    /// Number of arguments.
    pub(crate) fn len(&self) -> usize {
        self.args.len()
    }

    /// Settings of the session.
    pub(crate) fn config(&self) -> &ConfigOptions {
        self.config
    }

    /// The field of the result as it was planned, with its metadata.
    pub(crate) fn return_field(&self) -> &FieldRef {
        self.returns
    }

    /// Type of the result.
    pub(crate) fn return_type(&self) -> &DataType {
        self.returns.data_type()
    }

    /// The value of an argument that is the same for all rows.
    pub(crate) fn constant(&self, i: usize) -> Option<&'a ScalarValue> {
        match self.args.get(i) {
            Some(Arg::One(s)) => Some(s),
            _ => None,
        }
    }

    /// An argument as an array of one value per row.
    pub(crate) fn array(&self, i: usize) -> Result<ArrayRef> {
        match &self.args[i] {
            Arg::Each(a) => Ok(Arc::clone(&a.borrow())),
            Arg::One(s) => Ok(s.to_array_of_size(self.rows)?),
        }
    }

    /// Type of an argument.
    pub(crate) fn array_type(&self, i: usize) -> DataType {
        match &self.args[i] {
            Arg::Each(a) => a.borrow().data_type().clone(),
            Arg::One(s) => s.data_type(),
        }
    }

    /// An argument with all its lists opened.
    pub(crate) fn ragged(&self, i: usize) -> Result<RaggedArray> {
        RaggedArray::try_from_arrow(&self.array(i)?)
    }

    /// As [`ragged`](Self::ragged), for one look: the argument is empty afterwards. What only this call
    /// has may then be written over.
    pub(crate) fn take_ragged(&self, i: usize) -> Result<RaggedArray> {
        match &self.args[i] {
            Arg::Each(a) => {
                let none = new_empty_array(a.borrow().data_type());
                RaggedArray::try_from_arrow(&a.replace(none))
            }
            Arg::One(_) => self.ragged(i),
        }
    }

    /// An integer argument; not given is NULL.
    pub(crate) fn row_arg(&self, i: usize) -> Result<RowArg> {
        match self.args.get(i) {
            None => Ok(RowArg::NONE),
            Some(Arg::One(s)) => match integer_of(s) {
                Some(n) => Ok(RowArg::All(n)),
                None => Err(self.too_big(i, s)),
            },
            Some(Arg::Each(a)) => Ok(RowArg::Each(self.integers(i, &a.borrow())?)),
        }
    }

    fn integers(&self, i: usize, array: &ArrayRef) -> Result<Int64Array> {
        let options = CastOptions { safe: false, ..Default::default() };
        let cast =
            cast_with_options(array, &DataType::Int64, &options).map_err(|e| self.too_big(i, e))?;
        Ok(cast.as_primitive::<Int64Type>().clone())
    }

    fn too_big(&self, i: usize, what: impl std::fmt::Display) -> Error {
        Error::invalid(format!(
            "{}: argument {} must be a signed 64-bit integer: {what}",
            self.name(),
            i + 1
        ))
    }

    /// The integer literal of an argument; `None` when not given or NULL.
    pub(crate) fn integer(&self, i: usize) -> Option<i64> {
        self.constant(i).and_then(integer_of).flatten()
    }

    /// The text of a constant argument.
    pub(crate) fn text(&self, i: usize) -> Option<&'a str> {
        self.constant(i).and_then(|s| s.try_as_str()).flatten()
    }

    /// A ragged result in the type that was planned.
    pub(crate) fn lists(&self, result: &RaggedArray) -> Result<ArrayRef> {
        result.to_arrow_as(self.return_type())
    }
}
