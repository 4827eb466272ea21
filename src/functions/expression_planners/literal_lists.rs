//! The planner of lists of literals, such as `[1, 2, 3]`.

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::error::Result;
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult};
use datafusion::logical_expr::{Expr, ExprSchemable};

use crate::functions::expression_planners::constant_folding::fold_list;
use crate::functions::expression_planners::times_of_day::unify_clocks;

/// Plans `[1, 2, 3]` as a literal instead of a call of `make_array` if all elements are literals.
#[derive(Debug)]
pub(crate) struct LiteralLists;

impl ExprPlanner for LiteralLists {
    fn plan_array_literal(
        &self,
        exprs: Vec<Expr>,
        schema: &DFSchema,
    ) -> Result<PlannerResult<Vec<Expr>>> {
        let exprs = cast_strings_to_times(exprs, schema);
        let exprs = unify_clocks(&exprs, schema).unwrap_or(exprs);
        Ok(match fold_list(&exprs, schema) {
            Some(list) => PlannerResult::Planned(list),
            None => PlannerResult::Original(exprs),
        })
    }
}

/// Casts string literals in a list of dates, times or intervals, such as
/// `[DATE '2020-01-01', '2020-01-02']`, to the type of the other elements. Any other list stays
/// unchanged, also a list in which the other elements have several types.
pub(super) fn cast_strings_to_times(mut exprs: Vec<Expr>, schema: &DFSchema) -> Vec<Expr> {
    let is_string =
        |e: &Expr| matches!(e, Expr::Literal(v, _) if v.try_as_str().flatten().is_some());
    if !exprs.iter().any(is_string) {
        return exprs;
    }
    let others = exprs.iter().filter(|e| !is_string(e)).map(|e| e.get_type(schema));
    let Ok(types) = others.collect::<Result<Vec<_>>>() else { return exprs };
    let mut types = types.into_iter().filter(|t| !t.is_null());
    let Some(to) = types.next() else { return exprs };
    let is_time = to.is_temporal() || matches!(to, DataType::Interval(_));
    if is_time && types.all(|t| t == to) {
        for e in exprs.iter_mut().filter(|e| is_string(e)) {
            *e = Expr::Cast(Cast::new(Box::new(std::mem::take(e)), to.clone()));
        }
    }
    exprs
}
