//! Casts of strings to dates and times that Arrow does not parse.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{
    Cast, ColumnarValue, Expr, ExprSchemable, LogicalPlan, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, TryCast, Volatility,
};
use datafusion::scalar::ScalarValue;
use serrate_core::internal::times::{complete_times, has_texts};

use super::coarser_times::is_named_cast;
use crate::array::{RaggedArray, leaf_type};
use crate::functions::{StockFact, call_on_arrays, declare, has_fact};
use crate::sql::base::expression_parts::rewrite_parts;
use crate::sql::base::interval_texts::spell_out;
use crate::sql::sources::exact_texts::exceeds_day;

static TIMES: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| complete_function(TextForm::Time));
static INTERVALS: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| complete_function(TextForm::Interval));
static TIMES_OF_DAY: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| complete_function(TextForm::TimeOfDay));

fn complete_function(form: TextForm) -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::new_from_impl(CompleteText { form }))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum TextForm {
    /// A date or a timestamp.
    Time,
    TimeOfDay,
    Interval,
}

impl TextForm {
    /// Returns the form of the strings that a cast to the type `t` parses. Returns `None` if the
    /// leaves of `t` are neither dates, times nor intervals.
    fn from_type(t: &DataType) -> Option<Self> {
        match leaf_type(t) {
            DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => Some(Self::Time),
            DataType::Time32(_) | DataType::Time64(_) => Some(Self::TimeOfDay),
            DataType::Interval(_) => Some(Self::Interval),
            _ => None,
        }
    }

    fn complete_array(self, texts: &ArrayRef) -> Result<ArrayRef> {
        Ok(match self {
            Self::Time => complete_times(texts)?,
            Self::TimeOfDay => complete_leaves(texts, mark_invalid_time)?,
            Self::Interval => complete_leaves(texts, spell_out)?,
        })
    }

    fn complete_scalar(self, text: &ScalarValue) -> Result<ScalarValue> {
        ScalarValue::try_from_array(&self.complete_array(&text.to_array()?)?, 0)
    }
}

/// Analyzer rule: casts strings such as `2024-01-01 10:00` and `2024/1/5` to dates and times
/// ([`complete_times`]), as PostgreSQL and DuckDB do, and strings such as `1d 03:00` to intervals,
/// like the literal `INTERVAL '1d 03:00'`
/// ([`intervals`](crate::sql::statement::expressions::intervals)).
///
/// Arrow requires the seconds and two digits for each field of a time, and the names of the units
/// of an interval, so a cast of such a text fails. This workaround is obsolete once the tests
/// `stock_times_without_seconds_are_still_errors` and
/// `stock_intervals_without_units_are_still_errors` fail.
///
/// Arrow reads a string of an integer as a number of microseconds or nanoseconds after midnight, so
/// that `'10'::TIME` is 00:00:00.00000001, and 23:59:60 as a time that it cannot write. This rule
/// makes such casts fail ([`mark_invalid_time`]). This workaround is obsolete once the test
/// `stock_times_of_day_are_still_read_from_numbers` fails.
pub(in crate::sql) fn cast_texts_to_times(plan: LogicalPlan) -> Result<LogicalPlan> {
    let may_read = |e: &Expr| {
        matches!(e, Expr::Cast(_) | Expr::TryCast(_)) || is_named_cast(e) || is_reader(e)
    };
    rewrite_parts(plan, may_read, |e, columns| match e {
        Expr::Cast(Cast { expr, field }) => {
            let read = complete_cast(*expr, field.data_type(), columns)?;
            Ok(read.update_data(|expr| Expr::Cast(Cast { expr: Box::new(expr), field })))
        }
        Expr::TryCast(TryCast { expr, field }) => {
            let read = complete_cast(*expr, field.data_type(), columns)?;
            Ok(read.update_data(|expr| Expr::TryCast(TryCast { expr: Box::new(expr), field })))
        }
        Expr::ScalarFunction(mut call) => {
            let e = Expr::ScalarFunction(call.clone());
            let form = match is_reader(&e) {
                true => Some(TextForm::Time),
                false if is_named_cast(&e) => TextForm::from_type(&e.get_type(columns)?),
                false => None,
            };
            let Some(form) = form.filter(|_| !call.args.is_empty()) else {
                return Ok(Transformed::no(e));
            };
            let read = complete_text(call.args.swap_remove(0), form, columns)?;
            let changed = read.transformed;
            call.args.push(read.data);
            let last = call.args.len() - 1;
            call.args.swap(0, last);
            Ok(Transformed::new_transformed(Expr::ScalarFunction(call), changed))
        }
        e => Ok(Transformed::no(e)),
    })
}

/// Returns the functions that [`cast_texts_to_times`] inserts. Workers of a distributed query need
/// them to decode plans.
#[cfg(feature = "cluster")]
pub(in crate::sql) fn list_time_text_functions() -> [Arc<ScalarUDF>; 3] {
    [Arc::clone(&TIMES), Arc::clone(&INTERVALS), Arc::clone(&TIMES_OF_DAY)]
}

/// Whether an expression calls a function such as `to_timestamp` with one argument, and so without
/// a format: the function then parses a string as a cast does.
fn is_reader(e: &Expr) -> bool {
    matches!(e, Expr::ScalarFunction(call)
        if call.args.len() == 1 && has_fact(call.name(), StockFact::ReadsTime))
}

/// Rewrites `e`, the operand of a cast to `to`, with [`complete_text`] if `to` is a type of times
/// or intervals. Otherwise returns `e` unchanged.
fn complete_cast(e: Expr, to: &DataType, columns: &DFSchema) -> Result<Transformed<Expr>> {
    match TextForm::from_type(to) {
        Some(form) => complete_text(e, form, columns),
        None => Ok(Transformed::no(e)),
    }
}

/// Rewrites an expression that a cast reads as a time or an interval. Completes a string literal
/// (`2024/1/5` becomes `2024-01-05`), and wraps any other string in a call of [`CompleteText`].
fn complete_text(e: Expr, form: TextForm, columns: &DFSchema) -> Result<Transformed<Expr>> {
    match &e {
        Expr::Literal(value, metadata) if has_texts(&value.data_type()) => {
            let complete = form.complete_scalar(value)?;
            Ok(match complete == *value {
                true => Transformed::no(e),
                false => Transformed::yes(Expr::Literal(complete, metadata.clone())),
            })
        }
        Expr::ScalarFunction(call) if call.func.inner().is::<CompleteText>() => {
            Ok(Transformed::no(e))
        }
        _ if has_texts(&e.get_type(columns)?) => {
            let complete = match form {
                TextForm::Time => &TIMES,
                TextForm::TimeOfDay => &TIMES_OF_DAY,
                TextForm::Interval => &INTERVALS,
            };
            Ok(Transformed::yes(complete.call(vec![e])))
        }
        _ => Ok(Transformed::no(e)),
    }
}

/// Adds a blank to a string of an integer, and to 23:59:60, so that Arrow does not read them as
/// times of day. Returns `None` for any other string.
fn mark_invalid_time(text: &str) -> Option<String> {
    (text.parse::<i64>().is_ok() || exceeds_day(text)).then(|| format!("{text} "))
}

/// Replaces the strings for which `complete` returns another string, also in lists and
/// dictionaries. `complete` is, for example, [`spell_out`].
pub(super) fn complete_leaves(
    texts: &ArrayRef,
    complete: fn(&str) -> Option<String>,
) -> Result<ArrayRef> {
    if let DataType::Dictionary(..) = texts.data_type() {
        let dictionary = texts.as_any_dictionary();
        return Ok(dictionary.with_values(complete_leaves(dictionary.values(), complete)?));
    }
    if !texts.data_type().is_string() {
        let lists = RaggedArray::try_from_arrow(texts)?;
        let leaves = complete_leaves(lists.leaves(), complete)?;
        return Ok(lists.with_leaves(leaves)?.to_arrow_as(texts.data_type())?);
    }
    let strings = cast(texts, &DataType::Utf8)?;
    let completed = strings
        .as_string::<i32>()
        .iter()
        .map(|text| text.map(|text| complete(text).map_or(Cow::Borrowed(text), Cow::Owned)));
    Ok(cast(&completed.collect::<StringArray>(), texts.data_type())?)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct CompleteText {
    form: TextForm,
}

impl ScalarUDFImpl for CompleteText {
    declare!(Signature::any(1, Volatility::Immutable));

    fn name(&self) -> &str {
        match self.form {
            TextForm::Time => "complete_time",
            TextForm::TimeOfDay => "complete_time_of_day",
            TextForm::Interval => "complete_interval",
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types.first().cloned().unwrap_or(DataType::Null))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        call_on_arrays(self.name(), &args, |[texts]| self.form.complete_array(&texts))
    }
}
