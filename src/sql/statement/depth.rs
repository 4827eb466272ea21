//! How deep a statement goes: what is too deep for the stack is refused before it is parsed, and long chains
//! of AND, OR and `||` are made trees.

use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::logical_expr::sqlparser::ast::{BinaryOperator, Expr, Value};
use datafusion::logical_expr::sqlparser::dialect::Dialect;
use datafusion::logical_expr::sqlparser::keywords::Keyword;
use datafusion::logical_expr::sqlparser::tokenizer::{Token, Tokenizer};

/// The most operators in a row. The parser makes a chain without going deep, one operator within the next;
/// planners, and whatever frees an expression, go as deep as it is long. Chains of arithmetic become single calls.
const OPERATORS: usize = 2_500;

/// The most casts, subscripts and predicates in a row, each of which stays within the next. The optimizer copies and
/// compares expressions on the stack of its caller: 300 fill the 2 MiB that a thread has where nobody says more, in a
/// build without optimization.
const NESTED: usize = 128;

/// The most of AND, OR and `||` in a row, which are balanced before they are planned.
const BALANCED: usize = 50_000;

/// The most of UNION, JOIN and `|>` in a row.
const RELATIONS: usize = 1_000;

/// The most comparisons in a row without AND or OR between them, as in `a = b = c`. Planning them takes the
/// square of their number.
const COMPARISONS: usize = 200;

/// Operators in a row on one level of parentheses.
#[derive(Clone, Copy, Default)]
struct Level {
    operators: usize,
    /// Casts and subscripts, of one operand of arithmetic.
    tight: usize,
    /// Predicates, which bind less than arithmetic.
    loose: usize,
    comparisons: usize,
    balanced: usize,
    relations: usize,
}

/// Refuses a text that is too deep for planners, or has more parentheses and CASE within one another than the
/// parser takes (`datafusion.sql_parser.recursion_limit`): it would try each level anew in another way, and
/// so need twice the time for each.
pub(in crate::sql) fn check_depth(
    text: &str,
    dialect: &dyn Dialect,
    most_nested: usize,
) -> Result<()> {
    // An operator and what it stands between take two characters at least.
    if text.len() < DEEP {
        return Ok(());
    }
    // What is no SQL is for the parser to say.
    let Ok(tokens) = Tokenizer::new(dialect, text).tokenize() else { return Ok(()) };
    let mut levels = vec![Level::default()];
    let mut most = Level::default();
    let (mut cases, mut nested) = (0usize, 0usize);
    for token in &tokens {
        nested = nested.max(levels.len() + cases);
        let Some(level) = levels.last_mut() else { return Ok(()) };
        match token {
            Token::LParen | Token::LBrace => {
                let outer = *level;
                levels.push(Level { relations: 0, ..outer });
                continue;
            }
            Token::RParen | Token::RBrace => {
                if levels.len() > 1 {
                    levels.pop();
                }
                continue;
            }
            Token::SemiColon => *level = Level::default(),
            Token::Comma => *level = Level { relations: level.relations, ..Level::default() },
            Token::StringConcat => level.balanced += 1,
            Token::VerticalBarRightAngleBracket => level.relations += 1,
            Token::DoubleColon | Token::LBracket => level.tight += 1,
            Token::Plus
            | Token::Minus
            | Token::Mul
            | Token::Div
            | Token::DuckIntDiv
            | Token::Mod
            | Token::Caret
            | Token::Pipe
            | Token::Ampersand
            | Token::ShiftLeft
            | Token::ShiftRight => {
                level.operators += 1;
                level.tight = 0;
            }
            Token::Tilde
            | Token::TildeAsterisk
            | Token::ExclamationMarkTilde
            | Token::ExclamationMarkTildeAsterisk
            | Token::ExclamationMark
            | Token::Arrow
            | Token::LongArrow
            | Token::HashArrow
            | Token::HashLongArrow
            | Token::AtArrow
            | Token::ArrowAt
            | Token::Overlap => level.loose += 1,
            Token::Eq
            | Token::DoubleEq
            | Token::Neq
            | Token::Lt
            | Token::LtEq
            | Token::Gt
            | Token::GtEq
            | Token::Spaceship => {
                level.operators += 1;
                level.comparisons += 1;
                level.tight = 0;
            }
            Token::Word(word) if word.quote_style.is_none() => match word.keyword {
                Keyword::CASE => cases += 1,
                Keyword::END => cases = cases.saturating_sub(1),
                Keyword::AND | Keyword::OR => {
                    level.balanced += 1;
                    // What stands between them is beside each other.
                    level.operators = 0;
                    level.comparisons = 0;
                    level.tight = 0;
                    level.loose = 0;
                }
                Keyword::AT | Keyword::COLLATE => level.tight += 1,
                Keyword::XOR | Keyword::EXPLAIN => level.operators += 1,
                Keyword::NOT
                | Keyword::IS
                | Keyword::LIKE
                | Keyword::ILIKE
                | Keyword::IN
                | Keyword::BETWEEN
                | Keyword::SIMILAR => level.loose += 1,
                Keyword::UNION | Keyword::INTERSECT | Keyword::EXCEPT | Keyword::JOIN => {
                    *level = Level { relations: level.relations + 1, ..Level::default() };
                }
                Keyword::SELECT
                | Keyword::FROM
                | Keyword::WHERE
                | Keyword::GROUP
                | Keyword::HAVING
                | Keyword::ORDER
                | Keyword::LIMIT
                | Keyword::ON
                | Keyword::WHEN
                | Keyword::THEN
                | Keyword::ELSE => {
                    *level = Level { relations: level.relations, ..Level::default() };
                }
                _ => {}
            },
            _ => {}
        }
        most.operators = most.operators.max(level.operators);
        most.tight = most.tight.max(level.tight.saturating_add(level.loose));
        most.comparisons = most.comparisons.max(level.comparisons);
        most.balanced = most.balanced.max(level.balanced);
        most.relations = most.relations.max(level.relations);
    }
    for (found, limit, what, instead) in [
        (
            most.operators,
            OPERATORS,
            "operators in a row",
            "add up a list, as in ragged_sum([a, b, ..])",
        ),
        (
            most.tight,
            NESTED,
            "operators in a row that are no arithmetic",
            "name parts of it in WITH, or write AND between them",
        ),
        (
            most.balanced,
            BALANCED,
            "AND, OR or || in a row",
            "write x IN (..), or join a table of the values",
        ),
        (
            most.relations,
            RELATIONS,
            "joins, unions or |> in a row",
            "put results in tables between",
        ),
        (
            most.comparisons,
            COMPARISONS,
            "comparisons in a row",
            "write AND between them, or x IN (..)",
        ),
        (
            nested.saturating_sub(1),
            most_nested,
            "parentheses or CASE within one another",
            "name parts of it in WITH",
        ),
    ] {
        if found > limit {
            return plan_err!(
                "the statement has {found} {what}, and at most {limit} are planned: {instead}"
            );
        }
    }
    Ok(())
}

/// Shorter texts are not deep.
const DEEP: usize = 256;

/// The stack that planning goes on with where there is less; what is not used is not taken.
const STACK: usize = 64 << 20;

/// Runs `work` on a stack for [`OPERATORS`] levels of an expression and [`BALANCED`] of a syntax tree.
pub(in crate::sql) fn deep<T>(work: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(STACK / 2, STACK, work)
}

/// Runs what is asynchronous as [`deep`] runs what is not.
pub(in crate::sql) async fn run_deep<F: Future>(work: F) -> F::Output {
    let mut work = std::pin::pin!(work);
    std::future::poll_fn(|waker| deep(|| work.as_mut().poll(waker))).await
}

/// Chains shorter than this stay as they were written.
const SHORT: usize = 64;

/// Makes a long chain of AND, of OR or of `||` a tree: the three mean the same however they are grouped.
///
/// The parser gives `((a OR b) OR c) OR d`, in which planners ask the whole left side at every operator.
/// Operands keep their order.
pub(in crate::sql) fn balance(expr: &mut Expr) {
    let Expr::BinaryOp { op, .. } = expr else { return };
    let op = match op {
        op @ (BinaryOperator::And | BinaryOperator::Or | BinaryOperator::StringConcat) => {
            op.clone()
        }
        _ => return,
    };
    let mut length = 0usize;
    let mut next = &*expr;
    while let Expr::BinaryOp { left, op: other, .. } = next
        && *other == op
    {
        length += 1;
        next = left;
    }
    if length < SHORT {
        return;
    }
    let hole = || Expr::value(Value::Null);
    let mut operands = Vec::with_capacity(length + 1);
    let mut rest = std::mem::replace(expr, hole());
    loop {
        match rest {
            Expr::BinaryOp { left, op: other, right } if other == op => {
                operands.push(*right);
                rest = *left;
            }
            first => {
                operands.push(first);
                break;
            }
        }
    }
    operands.reverse();
    // Neighbours go together until one is left.
    while operands.len() > 1 {
        let mut pairs = Vec::with_capacity(operands.len().div_ceil(2));
        let mut all = operands.into_iter();
        while let Some(left) = all.next() {
            pairs.push(match all.next() {
                Some(right) => {
                    Expr::BinaryOp { left: Box::new(left), op: op.clone(), right: Box::new(right) }
                }
                None => left,
            });
        }
        operands = pairs;
    }
    *expr = operands.pop().unwrap_or_else(hole);
}
