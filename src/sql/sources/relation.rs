//! FROM items that DataFusion does not support: `unnest(..)` as a table function, and `(FROM t)`.

use datafusion::error::Result;
use datafusion::logical_expr::planner::{
    RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::logical_expr::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, ObjectName, TableFactor,
};

use crate::sql::statement::clauses::check_factor;
use crate::sql::statement::syntax_rewriter::rewrite_query;

/// Plans `FROM unnest(..)`, which the DuckDB dialect parses as a table function, and `FROM (FROM t)`.
#[derive(Debug)]
pub(in crate::sql) struct UnnestPlanner;

impl RelationPlanner for UnnestPlanner {
    fn plan_relation(
        &self,
        relation: TableFactor,
        _context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let mut relation = relation;
        // A statement for `ctx.sql` has not been checked yet for clauses that the planner ignores.
        check_factor(&relation)?;
        if let TableFactor::Derived { subquery, .. } = &mut relation {
            rewrite_query(subquery)?;
        }
        let relation = as_unnest(&relation).unwrap_or(relation);
        Ok(RelationPlanning::Original(Box::new(relation)))
    }
}

pub(in crate::sql) fn as_unnest(relation: &TableFactor) -> Option<TableFactor> {
    let (name, args, alias, with_ordinality) = match relation {
        // A call with a clause such as TABLESAMPLE does not match, so that an error can name the clause.
        TableFactor::Table {
            name,
            alias,
            args: Some(args),
            with_ordinality,
            sample: None,
            version: None,
            ..
        } => (name, &args.args, alias, *with_ordinality),
        TableFactor::Function { name, args, alias, .. } => (name, args, alias, false),
        _ => return None,
    };
    if !is_unnest(name) {
        return None;
    }
    Some(TableFactor::UNNEST {
        alias: alias.clone(),
        array_exprs: find_plain_arguments(args)?,
        with_offset: false,
        with_offset_alias: None,
        with_ordinality,
    })
}

fn is_unnest(name: &ObjectName) -> bool {
    matches!(name.0.as_slice(), [part] if part
        .as_ident()
        .is_some_and(|i| i.quote_style.is_none() && i.value.eq_ignore_ascii_case("unnest")))
}

fn find_plain_arguments(args: &[FunctionArg]) -> Option<Vec<Expr>> {
    args.iter()
        .map(|arg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) => Some(e.clone()),
            _ => None,
        })
        .collect()
}
