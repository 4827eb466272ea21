//! Limits the depth of statements. Before a text is parsed, it is rejected if it would overflow the stack.
//! After parsing, long sequences of AND, OR and `||` are converted to balanced trees.

use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::logical_expr::sqlparser::ast::{BinaryOperator, Expr, Value};
use datafusion::logical_expr::sqlparser::dialect::Dialect;
use datafusion::logical_expr::sqlparser::keywords::Keyword;
use datafusion::logical_expr::sqlparser::tokenizer::{Token, Tokenizer};

/// Maximum number of consecutive operators, as in `a + b + c + ..`. The destructor of an expression
/// recurses once per operator. So does the planner, except for arithmetic, which Serrate plans as
/// one function call.
const OPERATORS: usize = 2_500;

/// Maximum number of consecutive casts, subscripts and predicates, each of which is an operand of the next.
///
/// The optimizer copies and compares expressions recursively on its caller's stack. In a debug build, 300
/// levels fill the default thread stack of 2 MiB.
const NESTED: usize = 128;

/// Maximum number of consecutive AND, OR and `||`. They are balanced before they are planned.
const BALANCED: usize = 50_000;

/// Maximum number of consecutive UNION, JOIN and `|>`.
const RELATIONS: usize = 1_000;

/// Maximum number of consecutive comparisons, as in `a = b = c`, whose planning time is quadratic.
const COMPARISONS: usize = 200;

/// The numbers of consecutive operators of each kind on one level of parentheses.
#[derive(Clone, Copy, Default)]
struct OperatorLevel {
    operators: usize,
    /// Number of casts and subscripts, which bind tighter than arithmetic.
    tight: usize,
    /// Number of predicates such as IS NULL, which bind looser than arithmetic.
    loose: usize,
    comparisons: usize,
    balanced: usize,
    relations: usize,
}

/// Returns an error for a text that is too deep for planners, or that nests more parentheses and CASE than
/// the parser accepts (`datafusion.sql_parser.recursion_limit`). The parser parses each nesting level
/// twice, so its time is exponential in the depth.
pub(in crate::sql) fn check_depth(
    text: &str,
    dialect: &dyn Dialect,
    most_nested: usize,
) -> Result<()> {
    if text.len() < DEEP {
        return Ok(());
    }
    // This check accepts an invalid text. The parser reports the error later.
    let Ok(tokens) = Tokenizer::new(dialect, text).tokenize() else { return Ok(()) };
    let mut levels = vec![OperatorLevel::default()];
    let mut most = OperatorLevel::default();
    let (mut cases, mut nested) = (0usize, 0usize);
    for token in &tokens {
        nested = nested.max(levels.len() + cases);
        let Some(level) = levels.last_mut() else { return Ok(()) };
        match token {
            Token::LParen | Token::LBrace => {
                let outer = *level;
                levels.push(OperatorLevel { relations: 0, ..outer });
                continue;
            }
            Token::RParen | Token::RBrace => {
                if levels.len() > 1 {
                    levels.pop();
                }
                continue;
            }
            Token::SemiColon => *level = OperatorLevel::default(),
            Token::Comma => {
                *level = OperatorLevel { relations: level.relations, ..OperatorLevel::default() }
            }
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
                    // The operators in one operand of AND or OR do not add to the depth of the next operand.
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
                    *level = OperatorLevel {
                        relations: level.relations + 1,
                        ..OperatorLevel::default()
                    };
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
                    *level =
                        OperatorLevel { relations: level.relations, ..OperatorLevel::default() };
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
            "use a function on a list instead, as in ragged_sum([a, b, ..])",
        ),
        (
            most.tight,
            NESTED,
            "casts, subscripts and predicates in a row",
            "compute parts of the expression in WITH, or separate them with AND",
        ),
        (
            most.balanced,
            BALANCED,
            "AND, OR or || in a row",
            "use x IN (..), or join a table of the values",
        ),
        (
            most.relations,
            RELATIONS,
            "joins, unions or |> in a row",
            "store intermediate results with CREATE TABLE .. AS SELECT",
        ),
        (
            most.comparisons,
            COMPARISONS,
            "comparisons in a row",
            "separate them with AND, or use x IN (..)",
        ),
        (
            nested.saturating_sub(1),
            most_nested,
            "nested parentheses or CASE",
            "move parts of the statement into WITH queries",
        ),
    ] {
        if found > limit {
            return plan_err!(
                "the statement has {found} {what}, but at most {limit} are supported; {instead}"
            );
        }
    }
    Ok(())
}

/// Length in bytes below which no text is too deep: each level takes two characters or more.
const DEEP: usize = 256;

const SHORT: usize = 64;

/// Converts a long sequence of operands with AND, OR or `||` between them to a balanced tree.
///
/// The parser returns `((a OR b) OR c) OR d`, in which planners visit the whole left side at every
/// operator. The operators are associative, so balancing keeps the order of the operands.
pub(in crate::sql) fn balance_chains(expr: &mut Expr) {
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
