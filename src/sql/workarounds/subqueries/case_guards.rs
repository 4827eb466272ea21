//! Finds the rows for which CASE, AND and OR evaluate an operand, and guards operands of IN that
//! may fail for other rows.

use datafusion::common::DFSchema;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::expr::InSubquery;
use datafusion::logical_expr::{BinaryExpr, Case, Expr, Operator, lit};

use crate::functions::cannot_fail;
use crate::sql::base::subquery_parts::find_query;

/// Guards the left operands of IN in a condition of WHERE that can fail: `CASE WHEN n > 0 THEN 10 /
/// n IN (SELECT ..) END` becomes `CASE WHEN n > 0 THEN (CASE WHEN n > 0 THEN 10 / n END) IN (SELECT
/// ..) END`. IN becomes a join, which computes its left operand for all rows.
///
/// The operands of an outermost AND need no guard: they become filters, one above the other.
pub(super) fn guard_operands(condition: Expr, schema: &DFSchema) -> Result<Expr> {
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
            let left = Box::new(guard_operands(*left, schema)?);
            let right = Box::new(guard_operands(*right, schema)?);
            Ok(Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }))
        }
        condition => guard_parts(condition, None, schema),
    }
}

/// Guards the operands of IN in an expression that is evaluated for the rows for which `guard` is
/// true, or for all rows.
fn guard_parts(e: Expr, guard: Option<&Expr>, schema: &DFSchema) -> Result<Expr> {
    if !has_test(&e)? {
        return Ok(e);
    }
    match (e, guard) {
        (Expr::InSubquery(InSubquery { expr, subquery, negated }), Some(guard))
            if !expr.is_volatile() && !cannot_fail(&expr, schema)? =>
        {
            let expr = Box::new(guard_parts(*expr, Some(guard), schema)?);
            let guarded = Case::new(None, vec![(Box::new(guard.clone()), expr)], None);
            let expr = Box::new(Expr::Case(guarded));
            Ok(Expr::InSubquery(InSubquery { expr, subquery, negated }))
        }
        (Expr::Case(case), guard) => guard_case(case, guard, schema).map(Expr::Case),
        (
            Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }),
            guard,
        ) => {
            // A chain of OR would otherwise copy each of its left parts.
            let of_right = match has_test(&right)? {
                true => guard_right(&left, op, guard, schema)?,
                false => None,
            };
            let left = Box::new(guard_parts(*left, guard, schema)?);
            let right = Box::new(guard_parts(*right, of_right.as_ref(), schema)?);
            Ok(Expr::BinaryExpr(BinaryExpr { left, op, right }))
        }
        (e, guard) => {
            let done =
                e.map_children(|part| guard_parts(part, guard, schema).map(Transformed::yes))?;
            Ok(done.data)
        }
    }
}

fn has_test(e: &Expr) -> Result<bool> {
    e.exists(|part| Ok(matches!(part, Expr::InSubquery(_))))
}

/// Returns a condition that is true for the rows for which the right operand of AND or OR is
/// evaluated, as [`guard_branch`] does.
fn guard_right(
    left: &Expr,
    op: Operator,
    guard: Option<&Expr>,
    schema: &DFSchema,
) -> Result<Option<Expr>> {
    // The right operand is evaluated as in CASE WHEN `decides` THEN true ELSE `right` END.
    let decides = match op {
        Operator::Or => left.clone(),
        _ => Expr::IsFalse(Box::new(left.clone())),
    };
    let case = Case::new(None, vec![(Box::new(decides), Box::new(lit(true)))], None);
    guard_branch(&case, CaseBranch::When(1), guard, schema)
}

fn guard_case(case: Case, guard: Option<&Expr>, schema: &DFSchema) -> Result<Case> {
    let guard_part = |part: &Expr, branch: CaseBranch| {
        if !has_test(part)? {
            return Ok(Box::new(part.clone()));
        }
        let of_part = guard_branch(&case, branch, guard, schema)?;
        guard_parts(part.clone(), of_part.as_ref(), schema).map(Box::new)
    };
    let mut branches = Vec::with_capacity(case.when_then_expr.len());
    for (at, (when, then)) in case.when_then_expr.iter().enumerate() {
        let when = guard_part(when, CaseBranch::When(at))?;
        branches.push((when, guard_part(then, CaseBranch::Then(at))?));
    }
    let last = CaseBranch::When(branches.len());
    let otherwise = case.else_expr.as_ref().map(|e| guard_part(e, last)).transpose()?;
    let operand = case.expr.as_ref().map(|e| guard_parts(e.as_ref().clone(), guard, schema));
    Ok(Case::new(operand.transpose()?.map(Box::new), branches, otherwise))
}

/// An operand of CASE. `When(i)` is condition `i`, or ELSE if `i` is the number of conditions.
/// `Then(i)` is the value after THEN for condition `i`.
#[derive(Clone, Copy)]
pub(super) enum CaseBranch {
    When(usize),
    Then(usize),
}

/// Returns a condition that is true for all rows for which CASE evaluates `branch`, if the CASE
/// itself is evaluated for the rows for which `guard` is true (all rows if `None`). Returns `None`
/// if no row can be excluded. The condition omits the first condition of CASE for which `is_guard`
/// is false, and all later conditions.
pub(super) fn guard_branch(
    case: &Case,
    branch: CaseBranch,
    guard: Option<&Expr>,
    schema: &DFSchema,
) -> Result<Option<Expr>> {
    let (before, has_own) = match branch {
        CaseBranch::When(at) => (at, false),
        CaseBranch::Then(at) => (at, true),
    };
    let boxed = |value: bool| Box::new(lit(value));
    let mut whens = Vec::new();
    let mut otherwise = true;
    let is_operand_known = case.expr.iter().all(|e| is_guard(e, schema).unwrap_or(false));
    let parts = case.when_then_expr.iter().take(before.saturating_add(usize::from(has_own)));
    for (at, (when, _)) in parts.enumerate() {
        if !is_operand_known || !is_guard(when, schema)? {
            break;
        }
        let is_own = at == before;
        whens.push((when.clone(), boxed(is_own)));
        otherwise = !is_own;
    }
    if whens.is_empty() {
        return Ok(guard.cloned());
    }
    let is_evaluated = Expr::Case(Case::new(case.expr.clone(), whens, Some(boxed(otherwise))));
    Ok(Some(match guard {
        Some(guard) => {
            let within = vec![(Box::new(guard.clone()), Box::new(is_evaluated))];
            Expr::Case(Case::new(None, within, Some(boxed(false))))
        }
        None => is_evaluated,
    }))
}

/// Whether a condition uses only columns of `schema`, no outer columns, no subqueries and no
/// volatile functions, so that each evaluation for a row has the same result.
fn is_guard(guard: &Expr, schema: &DFSchema) -> Result<bool> {
    let is_of_rows = !guard.contains_outer()
        && guard.column_refs().into_iter().all(|column| schema.has_column(column));
    Ok(is_of_rows && !guard.is_volatile() && !guard.exists(|e| Ok(find_query(e).is_some()))?)
}
