use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, StringArray};
use arrow::compute::SortOptions;
use arrow::datatypes::DataType;
use arrow::row::{RowConverter, SortField};
use datafusion::common::DFSchema;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::expr::{AggregateFunction, WindowFunction};
use datafusion::logical_expr::{
    ColumnarValue, Distinct, DistinctOn, Expr, ExprSchemable, LogicalPlan, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::functions::{call_on_arrays, declare};
use crate::sql::base::expression_parts::rewrite_node;
use crate::sql::workarounds::sorting::sorts::has_comparison;
use serrate_core::internal::to_canonical_floats;

/// `SELECT sum(x) OVER (ORDER BY [[x]]) FROM (VALUES (1), (1), (2)) t(x)` fails without this rule.
///
/// Analyzer rule, before DataFusion's type coercion: replaces nested keys of windows and of ordered
/// aggregates with strings that sort in the same order.
///
/// DataFusion compares the keys of a row with the keys of the previous row as scalars, and fails
/// with "Uncomparable values" for lists of lists. DataFusion also does not recognize that rows are
/// sorted by a constant key of such a type, and rejects RANGE, the default frame, for structs. This
/// workaround is obsolete once the test `stock_windows_over_lists_of_lists_still_fail` fails.
///
/// An ordered aggregate such as `array_agg(x ORDER BY y)` compares its keys as scalars where it
/// merges the results of partitions. The comparison of structs skips fields that are NULL, and
/// lists of lists fail. `DISTINCT ON` becomes such an aggregate. This workaround is obsolete once
/// the test `stock_ordered_aggregates_still_compare_structs_wrongly` fails.
///
/// A window fails if a key of PARTITION BY is computed from a column that a join equates with a
/// later key, as in `PARTITION BY t.a + 1, u.a` over a join by `t.a = u.a`. The rule puts columns
/// first.
///
/// The rule works around two more bugs: windows over binary strings have no RANGE frame, and
/// ordered aggregates with a repeated key panic (`arg_max(x, x)`). This workaround is obsolete once
/// the tests `stock_windows_over_binary_still_fail` and `stock_repeated_keys_still_panic` fail.
pub(in crate::sql) fn replace_window_keys(plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = plan.transform_up_with_subqueries(|plan| {
        let plan = match plan {
            LogicalPlan::Distinct(Distinct::On(on)) => return Ok(replace_distinct_keys(on)),
            LogicalPlan::Window(_) | LogicalPlan::Aggregate(_) => plan,
            other => return Ok(Transformed::no(other)),
        };
        rewrite_node(plan, |e, columns| Ok(replace_call_keys(e, columns)))
    })?;
    Ok(plan.data)
}

fn replace_call_keys(mut e: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let changed = match &mut e {
        Expr::WindowFunction(call) => {
            let WindowFunction { params, .. } = &mut **call;
            // All windows of a node must have the same sort keys, so keys are replaced for any kind
            // of frame.
            let lacks_order = |t: &DataType| t.is_binary() || t.is_nested() && !has_comparison(t);
            let order = params.order_by.iter_mut().map(|by| &mut by.expr);
            let changed = replace_keys(order.chain(&mut params.partition_by), schema, lacks_order);
            put_columns_first(&mut params.partition_by) || changed
        }
        Expr::AggregateFunction(AggregateFunction { params, .. }) => {
            let given = params.order_by.len();
            if given > 1 {
                let mut seen = HashSet::new();
                params.order_by.retain(|by| seen.insert(by.expr.clone()));
            }
            let is_shorter = params.order_by.len() < given;
            // The keys of a DISTINCT aggregate must be its arguments, so they stay unchanged.
            let keys = params.order_by.iter_mut().filter(|_| !params.distinct);
            replace_keys(keys.map(|by| &mut by.expr), schema, DataType::is_nested) || is_shorter
        }
        _ => false,
    };
    Transformed::new_transformed(e, changed)
}

/// Puts the columns among the keys of PARTITION BY first. Returns whether a key moved.
///
/// The order of these keys has no effect on the result.
fn put_columns_first(keys: &mut [Expr]) -> bool {
    let is_computed = |key: &Expr| !matches!(key, Expr::Column(_));
    let moves = !keys.is_sorted_by_key(is_computed);
    if moves {
        keys.sort_by_key(is_computed);
    }
    moves
}

fn replace_distinct_keys(mut on: DistinctOn) -> Transformed<LogicalPlan> {
    let schema = Arc::clone(on.input.schema());
    let changed = replace_keys(on.on_expr.iter_mut(), &schema, DataType::is_nested);
    let keys = on.sort_expr.iter_mut().flatten().map(|by| &mut by.expr);
    let changed = replace_keys(keys, &schema, DataType::is_nested) || changed;
    Transformed::new_transformed(LogicalPlan::Distinct(Distinct::On(on)), changed)
}

/// Wraps in calls of [`TextKey`] the keys whose type satisfies `lacks_order`. Returns whether a key
/// changed.
fn replace_keys<'a>(
    keys: impl Iterator<Item = &'a mut Expr>,
    schema: &DFSchema,
    lacks_order: impl Fn(&DataType) -> bool,
) -> bool {
    let replaced = keys.filter_map(|key| {
        let found = key.get_type(schema).is_ok_and(|t| lacks_order(&t));
        found.then(|| replace_key(key))
    });
    replaced.count() > 0
}

fn replace_key(key: &mut Expr) {
    *key = ScalarUDF::new_from_impl(TextKey).call(vec![std::mem::take(key)]);
}

/// `text_key(x)` returns strings that sort like `x` with NULL elements as the greatest values.
#[derive(Debug, PartialEq, Eq, Hash)]
struct TextKey;

impl ScalarUDFImpl for TextKey {
    declare!("text_key", Signature::any(1, Volatility::Immutable));

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        call_on_arrays(self.name(), &args, |[values]| to_texts(&values))
    }
}

/// Returns the bytes of Arrow's row format, which sort like the original values, as hexadecimal
/// digits.
fn to_texts(values: &ArrayRef) -> Result<ArrayRef> {
    let order = SortOptions { descending: false, nulls_first: false };
    let field = SortField::new_with_options(values.data_type().clone(), order);
    let converter = RowConverter::new(vec![field])?;
    let rows = converter.convert_columns(&[to_canonical_floats(values)?])?;
    let texts = rows.iter().enumerate().map(|(at, row)| {
        values.is_valid(at).then(|| {
            let bytes = row.as_ref();
            let mut text = String::with_capacity(bytes.len().saturating_mul(2));
            for byte in bytes {
                // Writing to a String cannot fail, so the result can be ignored.
                let _ = write!(text, "{byte:02x}");
            }
            text
        })
    });
    Ok(Arc::new(texts.collect::<StringArray>()))
}
