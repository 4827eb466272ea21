//! Reduces the rows of a scalar subquery to one for each outer row.

use arrow::array::AsArray;
use arrow::compute::max;
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{Column, exec_err};
use datafusion::error::Result;
use datafusion::functions_aggregate::expr_fn::{count, first_value};
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, LogicalPlanBuilder, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility, lit,
};

use crate::functions::declare;

/// Reduces `rows` to one row per combination of `keys`. Returns the plan, and an expression for
/// `value` over the plan's columns. Execution fails if several rows have the same `keys`.
pub(in crate::sql) fn keep_only_rows(
    rows: LogicalPlan,
    keys: &[Column],
    value: Expr,
) -> Result<(LogicalPlan, Expr)> {
    let [number, first] = ["__serrate_count", "__serrate_first"];
    let groups: Vec<Expr> = keys.iter().cloned().map(Expr::Column).collect();
    let found = LogicalPlanBuilder::from(rows)
        .aggregate(
            groups,
            [count(lit(1i64)).alias(number), first_value(value, Vec::new()).alias(first)],
        )?
        .build()?;
    let column = |name| Expr::Column(Column::new_unqualified(name));
    let only = ScalarUDF::new_from_impl(OnlyRow).call(vec![column(first), column(number)]);
    Ok((found, only))
}

/// Whether an expression is a call of `only_row`. The function is declared volatile, but its
/// results are equal in all copies of a plan, so copies with it need not share rows.
pub(in crate::sql) fn is_only_row(e: &Expr) -> bool {
    matches!(e, Expr::ScalarFunction(call) if call.func.inner().is::<OnlyRow>())
}

/// `only_row(value, count)` returns the value, or an error if the count is more than one.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OnlyRow;

impl ScalarUDFImpl for OnlyRow {
    // Declared volatile, so that no rule moves the call below a condition, where rows that the
    // query skips would be evaluated.
    declare!("only_row", Signature::any(2, Volatility::Volatile));

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types.first().cloned().unwrap_or(DataType::Null))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let [value, number] = args.args.as_slice() else {
            return exec_err!(
                "internal error: only_row takes 2 arguments, a value and a count; {} given; please report it",
                args.args.len()
            );
        };
        let numbers = number.to_array(rows)?;
        let numbers = numbers.as_primitive::<Int64Type>();
        match max(numbers).filter(|most| *most > 1) {
            Some(most) => exec_err!(
                "a scalar subquery has {most} rows for one row of the outer query; add LIMIT 1 after an ORDER BY, or use an aggregate such as max(..)"
            ),
            None => Ok(value.clone()),
        }
    }
}
