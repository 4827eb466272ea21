use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use arrow::array::{
    Array, ArrayRef, AsArray, LargeStringArray, StringArray, StringViewArray, make_array,
};
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::DFSchema;
use datafusion::common::format::DEFAULT_FORMAT_OPTIONS;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{
    Cast, ColumnarValue, Expr, ExprSchemable, LogicalPlan, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, TryCast, Volatility,
};
use serrate_core::internal::times::{has_spans, write_spans};

use crate::functions::{call_on_arrays, declare};
use crate::sql::base::expression_parts::rewrite_parts;
use crate::sql::workarounds::types::coarser_times::is_named_cast;

static LIST_TEXT: LazyLock<ScalarUDF> = LazyLock::new(|| ScalarUDF::new_from_impl(ListText));

/// Analyzer rule: casts of lists to strings write NULL elements as `NULL`, casts of durations and
/// intervals to strings write `60d 03:00`, as query results show them, and casts of structs write
/// `{'a': 1}`.
///
/// A string element that a cast back to a list would split or change, such as `a, b` or `null`, is
/// put in quotes, as in DuckDB: `['a, b']` and `['a', 'b']` give different strings, and casts of
/// these strings to lists return the original lists.
///
/// Arrow has no cast of structs to strings. Arrow writes NULL elements as empty strings, so that
/// `[1, NULL]` is `[1, ]`, and the lists `[NULL]` and `['']` have the same text. This workaround is
/// obsolete once the test `stock_texts_of_lists_still_lack_null` fails.
pub(in crate::sql) fn rewrite_list_texts(plan: LogicalPlan) -> Result<LogicalPlan> {
    let to_text = |e: &Expr| match e {
        Expr::Cast(Cast { field, .. }) | Expr::TryCast(TryCast { field, .. }) => {
            field.data_type().is_string()
        }
        e => is_named_cast(e),
    };
    rewrite_parts(plan, to_text, |e, columns| {
        let Some((list, text)) = find_text_of_list(&e, columns) else {
            return Ok(Transformed::no(e));
        };
        let shown = LIST_TEXT.call(vec![list.clone()]);
        Ok(Transformed::yes(match text {
            DataType::Utf8 => shown,
            text => Expr::Cast(Cast::new(Box::new(shown), text)),
        }))
    })
}

/// If an expression casts a list, duration, interval or struct to a string, returns the operand of
/// the cast, and the string type.
fn find_text_of_list<'a>(e: &'a Expr, schema: &DFSchema) -> Option<(&'a Expr, DataType)> {
    let (list, text) = match e {
        Expr::Cast(Cast { expr, field }) | Expr::TryCast(TryCast { expr, field }) => {
            (expr.as_ref(), field.data_type().clone())
        }
        Expr::ScalarFunction(call) if is_named_cast(e) => {
            (call.args.first()?, e.get_type(schema).ok()?)
        }
        _ => return None,
    };
    let is_shown = |t: DataType| is_list(&t) || has_spans(&t);
    let is_of_list = text.is_string() && list.get_type(schema).is_ok_and(is_shown);
    is_of_list.then_some((list, text))
}

fn is_list(t: &DataType) -> bool {
    use DataType::{FixedSizeList, LargeList, LargeListView, List, ListView};
    matches!(t, List(_) | LargeList(_) | ListView(_) | LargeListView(_) | FixedSizeList(..))
}

/// Returns `t` with lists in place of list views and lists of a fixed size, which Arrow does not
/// cast to strings.
fn find_list_type(t: &DataType) -> DataType {
    let inner =
        |f: &FieldRef| Arc::new(f.as_ref().clone().with_data_type(find_list_type(f.data_type())));
    match t {
        DataType::List(f) | DataType::ListView(f) | DataType::FixedSizeList(f, _) => {
            DataType::List(inner(f))
        }
        DataType::LargeList(f) | DataType::LargeListView(f) => DataType::LargeList(inner(f)),
        other => other.clone(),
    }
}

/// Returns the function that [`rewrite_list_texts`] inserts. Workers of a distributed query need it
/// to decode plans.
#[cfg(feature = "cluster")]
pub(in crate::sql) fn list_text_function() -> ScalarUDF {
    LIST_TEXT.clone()
}

/// Puts quotes around each string, such as `a, b` or `null`, that would be split or changed if the
/// text of its list were cast back to a list. Does so also within lists, structs and dictionaries.
fn quote_texts(values: &ArrayRef) -> Result<ArrayRef> {
    let quote = |text: Option<&str>| text.map(|text| quote_text(text).into_owned());
    Ok(match values.data_type() {
        DataType::Utf8 => {
            Arc::new(values.as_string::<i32>().iter().map(quote).collect::<StringArray>())
        }
        DataType::LargeUtf8 => {
            Arc::new(values.as_string::<i64>().iter().map(quote).collect::<LargeStringArray>())
        }
        DataType::Utf8View => {
            Arc::new(values.as_string_view().iter().map(quote).collect::<StringViewArray>())
        }
        t if !t.is_nested() && !matches!(t, DataType::Dictionary(..)) => Arc::clone(values),
        _ => {
            let data = values.to_data();
            let children: Result<Vec<_>> = data
                .child_data()
                .iter()
                .map(|child| Ok(quote_texts(&make_array(child.clone()))?.to_data()))
                .collect();
            make_array(data.into_builder().child_data(children?).build()?)
        }
    })
}

fn quote_text(text: &str) -> Cow<'_, str> {
    const MARKS: [char; 12] = ['[', ']', '{', '}', '(', ')', '\'', '"', '\\', ',', ':', '='];
    let is_plain = !text.is_empty()
        && text.trim() == text
        && !text.eq_ignore_ascii_case("null")
        && !text.contains(MARKS);
    match is_plain {
        true => Cow::Borrowed(text),
        false => Cow::Owned(format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))),
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ListText;

impl ScalarUDFImpl for ListText {
    declare!("list_text", Signature::any(1, Volatility::Immutable));

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        call_on_arrays(self.name(), &args, |[lists]| {
            let format_options = DEFAULT_FORMAT_OPTIONS.with_null("NULL");
            let options = CastOptions { safe: false, format_options };
            let list_type = find_list_type(lists.data_type());
            let quoted = match list_type == *lists.data_type() {
                true => quote_texts(&lists)?,
                false => quote_texts(&cast(&lists, &list_type)?)?,
            };
            Ok(cast_with_options(&write_spans(&quoted)?, &DataType::Utf8, &options)?)
        })
    }
}
