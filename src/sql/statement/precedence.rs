//! Corrects the precedence of `IS DISTINCT FROM` over AND and OR.
//!
//! sqlparser 0.62 parses everything after `a IS DISTINCT FROM` as its right operand: `a IS DISTINCT FROM b
//! AND c` becomes `a IS DISTINCT FROM (b AND c)`. Parentheses in the text are separate nodes, so this file
//! can recognize such operands and regroup them. Obsolete once the test `the_parser_still_reads_too_much`
//! fails.

use datafusion::logical_expr::sqlparser::ast::{BinaryOperator, Expr, UnaryOperator, Value};

/// Moves AND and OR out of the right operand of `IS [NOT] DISTINCT FROM`.
pub(in crate::sql) fn regroup_distinct(expr: &mut Expr) {
    if !takes_too_much(expr) {
        return;
    }
    let mut chain = OperandChain::default();
    chain.flatten_chain(std::mem::replace(expr, Expr::value(Value::Null)));
    if let Some(regrouped) = chain.build() {
        *expr = regrouped;
    }
}

fn is_logic(expr: &Expr) -> bool {
    matches!(expr, Expr::BinaryOp { op: BinaryOperator::And | BinaryOperator::Or, .. })
}

/// Whether the right operand of an IS DISTINCT FROM in an expression contains AND or OR without parentheses.
fn takes_too_much(expr: &Expr) -> bool {
    let mut open = vec![expr];
    while let Some(expr) = open.pop() {
        match expr {
            Expr::BinaryOp { left, right, .. } if is_logic(expr) => open.extend([&**left, right]),
            Expr::UnaryOp { op: UnaryOperator::Not, expr } => open.push(expr),
            Expr::IsDistinctFrom(_, right) | Expr::IsNotDistinctFrom(_, right) => {
                if is_logic(right) {
                    return true;
                }
                open.push(right);
            }
            _ => {}
        }
    }
    false
}

/// Operands in the order of the statement, with the operator (AND or OR) between each two of them.
#[derive(Default)]
struct OperandChain {
    operands: Vec<Expr>,
    operators: Vec<BinaryOperator>,
}

impl OperandChain {
    fn flatten_chain(&mut self, mut expr: Expr) {
        // The parser nests a long sequence of AND and OR in the left operands, so a loop visits these.
        let mut rest = Vec::new();
        loop {
            match expr {
                Expr::BinaryOp {
                    left,
                    op: op @ (BinaryOperator::And | BinaryOperator::Or),
                    right,
                } => {
                    rest.push((op, right));
                    expr = *left;
                }
                first => {
                    self.flatten_operand(first);
                    break;
                }
            }
        }
        for (op, right) in rest.into_iter().rev() {
            self.operators.push(op);
            self.flatten_chain(*right);
        }
    }

    fn flatten_operand(&mut self, expr: Expr) {
        match expr {
            Expr::IsDistinctFrom(left, right) => {
                self.flatten_first(*right, |right| Expr::IsDistinctFrom(left, right));
            }
            Expr::IsNotDistinctFrom(left, right) => {
                self.flatten_first(*right, |right| Expr::IsNotDistinctFrom(left, right));
            }
            Expr::UnaryOp { op: op @ UnaryOperator::Not, expr } => {
                self.flatten_first(*expr, |expr| Expr::UnaryOp { op, expr });
            }
            operand => self.operands.push(operand),
        }
    }

    /// Appends the operands of an expression, the first of them changed by `within`.
    fn flatten_first(&mut self, expr: Expr, within: impl FnOnce(Box<Expr>) -> Expr) {
        let first = self.operands.len();
        self.flatten_chain(expr);
        if let Some(operand) = self.operands.get_mut(first) {
            let taken = std::mem::replace(operand, Expr::value(Value::Null));
            *operand = within(Box::new(taken));
        }
    }

    /// Combines the operands from left to right, AND before OR. Returns `None` without operands.
    fn build(self) -> Option<Expr> {
        let join = |left: Option<Expr>, op: BinaryOperator, right: Expr| match left {
            Some(left) => Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) },
            None => right,
        };
        let mut operands = self.operands.into_iter();
        let mut all = operands.next();
        let mut any = None;
        for (op, operand) in self.operators.into_iter().zip(operands) {
            match op {
                BinaryOperator::And => all = Some(join(all, BinaryOperator::And, operand)),
                _ => {
                    if let Some(all) = all.take() {
                        any = Some(join(any, BinaryOperator::Or, all));
                    }
                    all = Some(operand);
                }
            }
        }
        all.map(|all| join(any, BinaryOperator::Or, all))
    }
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::sqlparser::dialect::DuckDbDialect;
    use datafusion::logical_expr::sqlparser::parser::Parser;

    use super::*;

    fn parse(text: &str) -> Expr {
        Parser::new(&DuckDbDialect {}).try_with_sql(text).unwrap().parse_expr().unwrap()
    }

    fn bare(expr: Expr) -> Expr {
        match expr {
            Expr::Nested(inner) => bare(*inner),
            Expr::BinaryOp { left, op, right } => {
                Expr::BinaryOp { left: Box::new(bare(*left)), op, right: Box::new(bare(*right)) }
            }
            Expr::UnaryOp { op, expr } => Expr::UnaryOp { op, expr: Box::new(bare(*expr)) },
            Expr::IsDistinctFrom(l, r) => {
                Expr::IsDistinctFrom(Box::new(bare(*l)), Box::new(bare(*r)))
            }
            Expr::IsNotDistinctFrom(l, r) => {
                Expr::IsNotDistinctFrom(Box::new(bare(*l)), Box::new(bare(*r)))
            }
            other => other,
        }
    }

    #[test]
    fn and_and_or_are_around_it() {
        for (written, meant) in [
            ("a IS DISTINCT FROM b AND c", "(a IS DISTINCT FROM b) AND c"),
            ("a IS NOT DISTINCT FROM b OR c AND d", "(a IS NOT DISTINCT FROM b) OR (c AND d)"),
            ("x AND a IS DISTINCT FROM b OR c", "(x AND (a IS DISTINCT FROM b)) OR c"),
            ("NOT a IS DISTINCT FROM b AND c", "(NOT (a IS DISTINCT FROM b)) AND c"),
            ("a IS DISTINCT FROM NOT b AND c", "(a IS DISTINCT FROM (NOT b)) AND c"),
            ("a IS DISTINCT FROM b = 1 AND c", "(a IS DISTINCT FROM (b = 1)) AND c"),
            ("a IS DISTINCT FROM (b AND c)", "a IS DISTINCT FROM (b AND c)"),
            (
                "a IS DISTINCT FROM b AND c IS DISTINCT FROM d OR e",
                "((a IS DISTINCT FROM b) AND (c IS DISTINCT FROM d)) OR e",
            ),
        ] {
            let mut read = parse(written);
            regroup_distinct(&mut read);
            assert_eq!(bare(read).to_string(), bare(parse(meant)).to_string(), "{written}");
            let mut again = parse(meant);
            regroup_distinct(&mut again);
            assert_eq!(again, parse(meant));
        }
    }

    #[test]
    fn the_parser_still_reads_too_much() {
        assert!(takes_too_much(&parse("a IS DISTINCT FROM b AND c")));
    }
}
