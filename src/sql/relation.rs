//! What may stand in FROM beyond DataFusion's own.

use datafusion::error::Result;
use datafusion::logical_expr::planner::{
    RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::logical_expr::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, ObjectName, TableFactor,
};

/// Makes `FROM unnest(..)` the relation it is in other dialects: the parser of the DuckDB dialect,
/// which our session uses for its lambdas, takes it for a table function.
///
/// A list of the table to its left needs the word: `FROM t, LATERAL unnest(t.codes) AS u(code)`.
#[derive(Debug)]
pub(super) struct UnnestPlanner;

impl RelationPlanner for UnnestPlanner {
    fn plan_relation(
        &self,
        relation: TableFactor,
        _context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let rewritten = match relation {
            TableFactor::Table { name, alias, args: Some(args), with_ordinality, .. }
                if is_unnest(&name) && expressions(&args.args).is_some() =>
            {
                TableFactor::UNNEST {
                    alias,
                    array_exprs: expressions(&args.args).unwrap_or_default(),
                    with_offset: false,
                    with_offset_alias: None,
                    with_ordinality,
                }
            }
            TableFactor::Function { name, args, alias, .. }
                if is_unnest(&name) && expressions(&args).is_some() =>
            {
                TableFactor::UNNEST {
                    alias,
                    array_exprs: expressions(&args).unwrap_or_default(),
                    with_offset: false,
                    with_offset_alias: None,
                    with_ordinality: false,
                }
            }
            other => other,
        };
        Ok(RelationPlanning::Original(Box::new(rewritten)))
    }
}

fn is_unnest(name: &ObjectName) -> bool {
    matches!(name.0.as_slice(), [part] if part
        .as_ident()
        .is_some_and(|i| i.quote_style.is_none() && i.value.eq_ignore_ascii_case("unnest")))
}

/// The arguments when all are plain expressions.
fn expressions(args: &[FunctionArg]) -> Option<Vec<Expr>> {
    args.iter()
        .map(|arg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) => Some(e.clone()),
            _ => None,
        })
        .collect()
}
