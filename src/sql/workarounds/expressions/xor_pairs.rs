use std::collections::HashMap;

use datafusion::common::DFSchema;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, binary_expr, lit,
};

use crate::sql::base::expression_parts::rewrite_parts;

/// Analyzer rule: replaces two equal operands `x` of `^` with `x & 0`: `x ^ 5 ^ x` becomes
/// `5 ^ (x & 0)`.
///
/// DataFusion 55 removes such operands, so that for a NULL `x`, `x ^ x` is 0 instead of NULL. This
/// workaround is obsolete once the test `stock_pairs_of_xor_still_forget_null` fails.
pub(in crate::sql) fn rewrite_xor_pairs(plan: LogicalPlan) -> Result<LogicalPlan> {
    rewrite_parts(plan, is_xor, |e, columns| match is_xor(&e) {
        true => mask_pairs(e, columns),
        false => Ok(Transformed::no(e)),
    })
}

fn is_xor(e: &Expr) -> bool {
    matches!(e, Expr::BinaryExpr(BinaryExpr { op: Operator::BitwiseXor, .. }))
}

/// Replaces each pair of equal operands `x` in a chain of `^` with `x & 0`, which is NULL if `x` is
/// NULL, and otherwise 0.
fn mask_pairs(chain: Expr, columns: &DFSchema) -> Result<Transformed<Expr>> {
    let operands = list_operands(&chain);
    let mut counts: HashMap<&Expr, usize> = HashMap::new();
    for operand in operands.iter().copied().filter(|operand| !operand.is_volatile()) {
        *counts.entry(operand).or_default() += 1;
    }
    if counts.values().all(|count| *count == 1) {
        return Ok(Transformed::no(chain));
    }
    let mut kept: Vec<Expr> = Vec::new();
    for operand in operands {
        match counts.get_mut(operand) {
            Some(0) => {}
            Some(count) if *count % 2 == 0 => {
                let zero = lit(0i64).cast_to(&operand.get_type(columns)?, columns)?;
                let masked = binary_expr(operand.clone(), Operator::BitwiseAnd, zero);
                // The left operand, a shorter chain that is rewritten already, may contain `x & 0`.
                // Two operands `x & 0` would be a pair again.
                if !kept.contains(&masked) {
                    kept.push(masked);
                }
                *count = 0;
            }
            Some(count) => {
                if !kept.contains(operand) {
                    kept.push(operand.clone());
                }
                *count = 0;
            }
            None => kept.push(operand.clone()),
        }
    }
    let rewritten =
        kept.into_iter().reduce(|left, right| binary_expr(left, Operator::BitwiseXor, right));
    Ok(rewritten.map_or(Transformed::no(chain), Transformed::yes))
}

fn list_operands(chain: &Expr) -> Vec<&Expr> {
    let (mut open, mut operands) = (vec![chain], Vec::new());
    while let Some(e) = open.pop() {
        match e {
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::BitwiseXor, right }) => {
                open.extend([right.as_ref(), left.as_ref()]);
            }
            operand => operands.push(operand),
        }
    }
    operands
}
