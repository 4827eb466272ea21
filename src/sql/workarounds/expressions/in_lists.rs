//! Expressions that the simplifier of DataFusion would change to others with another result.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, LogicalPlan, Operator};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use crate::sql::base::expression_parts::{SavedNames, map_columns};

/// Prefix of the aliases that keep the simplifier from merging IN lists.
const APART: &str = "__serrate_apart_";

/// Applies `simplify_expressions` so that the rule neither merges IN lists nor replaces regular
/// expressions where the result would differ.
///
/// DataFusion 55 replaces `x IN (1, 2) AND x IN (3, 4)` with `false` and `x NOT IN (1, 2) OR x NOT
/// IN (3, 4)` with `true`. If `x` is NULL, both conditions should be NULL: because of the `true`,
/// WHERE keeps rows that it should drop. DataFusion also ignores NULL among the elements:
/// `x IN (1, NULL) AND x NOT IN (5, NULL)` is true for 1. While the rule runs, the tested values of
/// several IN lists have different aliases, so that the rule merges no lists. This workaround is
/// obsolete once the test `stock_in_lists_still_forget_null` fails.
///
/// DataFusion also replaces `s ~ '.*'` with `s IS NOT NULL`, which is false for NULL. It replaces
/// `s ~ 'a\\b'`, which finds a backslash, with `s LIKE '%a\b%'`, which escapes the `b`. This rule
/// begins such patterns with an empty group, so that the simplifier keeps them. This workaround is
/// obsolete once the tests `stock_patterns_still_forget_null` and
/// `stock_patterns_still_forget_backslashes` fail.
///
/// DataFusion also replaces `x % 1` with 0 for any `x` that is not a float and never NULL, although
/// a decimal may have a fraction. This rule replaces it with `x % -1`, which has the same value.
/// This workaround is obsolete once the test `stock_remainders_of_decimals_are_still_zero` fails.
pub(in crate::sql) fn keep_in_lists(
    stock: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let mut is_affected = false;
    plan.apply_expressions(|e| {
        is_affected = is_affected || TestedValues::find_in(e)?.is_affected();
        Ok(TreeNodeRecursion::Continue)
    })?;
    if !is_affected {
        return stock.rewrite(plan, config);
    }
    let saved = SavedNames::new(&plan)?;
    let hidden = map_columns(plan, set_lists_apart)?;
    let done = stock.rewrite(hidden.data, config)?;
    let shown = saved.restore_over(done.data, |e| {
        e.transform_down(|e| {
            Ok(match e {
                // Removes the aliases that [`set_lists_apart`] added, and those of the simplifier:
                // it gives a changed expression its former name as alias, which contains the
                // prefix.
                Expr::Alias(alias) if alias.name.contains(APART) => Transformed::yes(*alias.expr),
                e => Transformed::no(e),
            })
        })
    })?;
    Ok(Transformed::new(shown.data, done.transformed, TreeNodeRecursion::Continue))
}

/// If several IN lists test the same value, gives the value a different alias in each list. Also
/// changes patterns, as [`keep_in_lists`] says.
///
/// Numbers the aliases from 1 in each expression, so that a GROUP BY key has the same aliases in
/// all grouping sets.
fn set_lists_apart(e: Expr) -> Result<Transformed<Expr>> {
    let found = TestedValues::find_in(&e)?;
    if !found.is_affected() {
        return Ok(Transformed::no(e));
    }
    let several = found.find_repeated();
    let mut lists = 0;
    let mut apart = |of: Box<Expr>| {
        lists += 1;
        Box::new(of.alias(format!("{APART}{lists}")))
    };
    e.transform_down(|e| {
        if let Some(kept) = keep_pattern(&e).or_else(|| keep_remainder(&e)) {
            return Ok(Transformed::yes(kept));
        }
        Ok(match e {
            Expr::InList(list) if several.contains(&*list.expr) => {
                let expr = apart(list.expr);
                let list = Expr::InList(InList { expr, ..list });
                Transformed::new(list, true, TreeNodeRecursion::Jump)
            }
            Expr::BinaryExpr(BinaryExpr {
                left,
                op: op @ (Operator::Eq | Operator::NotEq),
                right,
            }) => {
                let pair = match (&*left, &*right) {
                    (Expr::Column(_), Expr::Literal(..)) if several.contains(&*left) => {
                        BinaryExpr { left: apart(left), op, right }
                    }
                    (Expr::Literal(..), Expr::Column(_)) if several.contains(&*right) => {
                        BinaryExpr { left, op, right: apart(right) }
                    }
                    _ => {
                        return Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr {
                            left,
                            op,
                            right,
                        })));
                    }
                };
                Transformed::new(Expr::BinaryExpr(pair), true, TreeNodeRecursion::Jump)
            }
            e => Transformed::no(e),
        })
    })
}

/// If [`find_lossy_pattern`] returns a pattern of `e`, returns `e` with an empty group in front of
/// this pattern: `()a\\b` for `a\\b`. Otherwise, returns `None`. An empty group matches everywhere,
/// so the pattern keeps its meaning.
fn keep_pattern(e: &Expr) -> Option<Expr> {
    find_lossy_pattern(e)?;
    match e.clone() {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let right = Box::new(group_pattern(*right)?);
            Some(Expr::BinaryExpr(BinaryExpr { left, op, right }))
        }
        Expr::ScalarFunction(mut call) => {
            let pattern = call.args.get_mut(1)?;
            *pattern = group_pattern(std::mem::take(pattern))?;
            Some(Expr::ScalarFunction(call))
        }
        _ => None,
    }
}

/// Puts an empty group in front of a literal pattern, below the casts of the pattern. Returns
/// `None` for other patterns.
fn group_pattern(pattern: Expr) -> Option<Expr> {
    Some(match pattern {
        Expr::Literal(text, _) => {
            let grouped = Some(format!("{EMPTY_GROUP}{}", text.try_as_str().flatten()?));
            let grouped = match text {
                ScalarValue::Utf8(_) => ScalarValue::Utf8(grouped),
                ScalarValue::LargeUtf8(_) => ScalarValue::LargeUtf8(grouped),
                ScalarValue::Utf8View(_) => ScalarValue::Utf8View(grouped),
                _ => return None,
            };
            Expr::Literal(grouped, None)
        }
        Expr::Cast(Cast { expr, field }) => {
            Expr::Cast(Cast { expr: Box::new(group_pattern(*expr)?), field })
        }
        _ => return None,
    })
}

/// Returns the literal in `pattern`, also below casts: type coercion casts a pattern to the type of
/// a column of another type of strings, as in Parquet files, and the simplifier evaluates the cast
/// before it replaces the pattern.
fn find_literal(pattern: &Expr) -> Option<&ScalarValue> {
    match pattern {
        Expr::Literal(text, _) => Some(text),
        Expr::Cast(cast) => find_literal(&cast.expr),
        _ => None,
    }
}

const EMPTY_GROUP: &str = "()";

/// Returns the pattern of `x ~ pattern` or `regexp_like(x, pattern)`, which the simplifier rewrites
/// as `x ~ pattern`, if the simplifier could change the result: if the pattern is `.*`, or may
/// match a backslash and does not begin with the empty group of [`keep_pattern`]. Otherwise returns
/// `None`.
fn find_lossy_pattern(e: &Expr) -> Option<&ScalarValue> {
    use Operator::{RegexIMatch, RegexMatch, RegexNotIMatch, RegexNotMatch};
    let pattern = match e {
        Expr::BinaryExpr(pair) => {
            let matches = [RegexMatch, RegexIMatch, RegexNotMatch, RegexNotIMatch];
            matches.contains(&pair.op).then_some(&*pair.right)?
        }
        Expr::ScalarFunction(call) if call.func.name() == "regexp_like" => call.args.get(1)?,
        _ => return None,
    };
    let pattern = find_literal(pattern)?;
    let text = pattern.try_as_str().flatten()?;
    // `\\` is a backslash, and so may be a code point such as `\x5C`.
    let has_backslash = [r"\\", r"\x", r"\u", r"\U"].iter().any(|part| text.contains(part));
    let is_lossy = text == ".*" || (has_backslash && !text.starts_with(EMPTY_GROUP));
    is_lossy.then_some(pattern)
}

/// Returns `x % -1` for `x % 1` if `x` is a decimal, and `None` for other expressions.
fn keep_remainder(e: &Expr) -> Option<Expr> {
    let Expr::BinaryExpr(BinaryExpr { left, op: op @ Operator::Modulo, right }) = e else {
        return None;
    };
    let right = Box::new(negate_decimal_one(right)?);
    Some(Expr::BinaryExpr(BinaryExpr { left: left.clone(), op: *op, right }))
}

/// Returns -1 for a literal 1 that is a decimal or is cast to a decimal.
fn negate_decimal_one(divisor: &Expr) -> Option<Expr> {
    let (value, cast) = match divisor {
        Expr::Literal(value, _) if value.data_type().is_decimal() => (value, None),
        Expr::Cast(cast) if cast.field.data_type().is_decimal() => {
            (find_literal(&cast.expr)?, Some(cast))
        }
        _ => return None,
    };
    let number = value.cast_to(&DataType::Float64).ok()?;
    if number != ScalarValue::Float64(Some(1.0)) {
        return None;
    }
    let negated = Expr::Literal(value.arithmetic_negate().ok()?, None);
    Some(match cast {
        None => negated,
        Some(cast) => Expr::Cast(Cast { expr: Box::new(negated), field: Arc::clone(&cast.field) }),
    })
}

/// The values that IN lists test, and for each value the number of its IN lists.
///
/// IN lists that one OR combines, and NOT IN lists that one AND combines, count as one list: the
/// simplifier merges them correctly. A merge of other lists is wrong for NULL.
#[derive(Default)]
struct TestedValues {
    lists: HashMap<Expr, usize>,
    has_lossy_part: bool,
}

impl TestedValues {
    /// Finds the IN lists of an expression, without recursion, which could overflow the stack.
    fn find_in(e: &Expr) -> Result<Self> {
        let mut found = Self::default();
        let mut left = vec![e];
        while let Some(e) = left.pop() {
            match e {
                Expr::BinaryExpr(BinaryExpr {
                    op: op @ (Operator::And | Operator::Or), ..
                }) => {
                    found.count_chain(e, *op, &mut left);
                    continue;
                }
                Expr::InList(list) => found.add_list(&list.expr),
                e => {
                    found.has_lossy_part |=
                        find_lossy_pattern(e).is_some() || keep_remainder(e).is_some();
                }
            }
            e.apply_children(|child| {
                left.push(child);
                Ok(TreeNodeRecursion::Continue)
            })?;
        }
        Ok(found)
    }

    /// Whether the simplifier could change the result of the expression.
    fn is_affected(&self) -> bool {
        self.has_lossy_part || self.lists.values().any(|lists| *lists > 1)
    }

    fn find_repeated(&self) -> HashSet<Expr> {
        let repeated = self.lists.iter().filter(|(_, lists)| **lists > 1);
        repeated.map(|(tested, _)| tested.clone()).collect()
    }

    fn add_list(&mut self, tested: &Expr) {
        *self.lists.entry(tested.clone()).or_default() += 1;
    }

    /// Counts the IN lists among the operands of a chain such as `a AND b AND c`. Appends the other
    /// operands to `others`.
    fn count_chain<'a>(&mut self, chain: &'a Expr, op: Operator, others: &mut Vec<&'a Expr>) {
        // For each tested value: whether a list tests it, and how many times `=` (in an OR) or `<>`
        // (in an AND) compares it with a literal.
        let mut unions: HashMap<&Expr, (bool, usize)> = HashMap::new();
        let comparison = if op == Operator::Or { Operator::Eq } else { Operator::NotEq };
        let mut left = vec![chain];
        while let Some(e) = left.pop() {
            match e {
                Expr::BinaryExpr(pair) if pair.op == op => {
                    left.extend([pair.left.as_ref(), pair.right.as_ref()]);
                }
                Expr::InList(list) if list.negated == (op == Operator::And) => {
                    unions.entry(list.expr.as_ref()).or_default().0 = true;
                }
                Expr::BinaryExpr(BinaryExpr { left, op, right }) if *op == comparison => {
                    match (&**left, &**right) {
                        (Expr::Column(_), Expr::Literal(..)) => {
                            unions.entry(left.as_ref()).or_default().1 += 1;
                        }
                        (Expr::Literal(..), Expr::Column(_)) => {
                            unions.entry(right.as_ref()).or_default().1 += 1;
                        }
                        _ => others.push(e),
                    }
                }
                e => others.push(e),
            }
        }
        for (tested, (has_list, equations)) in unions {
            if has_list || equations > 1 {
                self.add_list(tested);
            }
        }
    }
}
