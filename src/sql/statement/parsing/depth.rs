//! Limits the depth of statements. Before a text is parsed, it is rejected if it would overflow the
//! stack. After parsing, long sequences of AND, OR and `||` are converted to balanced trees.

use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::logical_expr::sqlparser::ast::{BinaryOperator, Expr, Value};
use datafusion::logical_expr::sqlparser::dialect::Dialect;
use datafusion::logical_expr::sqlparser::keywords::Keyword;
use datafusion::logical_expr::sqlparser::tokenizer::{Token, Tokenizer};

/// Maximum number of consecutive operators, as in `a + b + c + ..`. The destructor of an expression
/// recurses once per operator. So does the planner, except for arithmetic, which Serrate plans as
/// one function call.
const MAX_OPERATORS: usize = 2_500;

/// Maximum number of nested casts, subscripts and predicates. `x[1]::INT IS NULL` has three: the
/// subscript is the operand of the cast, and the cast is the operand of IS NULL.
///
/// The optimizer copies and compares expressions recursively on its caller's stack. In a debug
/// build, 300 levels fill the default thread stack of 2 MiB.
const MAX_NESTED: usize = 128;

/// Maximum number of consecutive AND, OR and `||`. Before planning, they are converted to a
/// balanced tree, so the depth of the tree is small.
const MAX_BALANCED: usize = 50_000;

/// Maximum number of consecutive UNION, JOIN and `|>`.
const MAX_RELATIONS: usize = 1_000;

/// Maximum number of consecutive comparisons, as in `a = b = c`, whose planning time is quadratic.
const MAX_COMPARISONS: usize = 200;

/// Returns an error for a text that is too deep for planners, or that nests more parentheses and
/// CASE than the parser accepts (`datafusion.sql_parser.recursion_limit`). The parser parses each
/// nesting level twice, so its time is exponential in the depth.
pub(in crate::sql) fn check_depth(
    text: &str,
    dialect: &dyn Dialect,
    most_nested: usize,
) -> Result<()> {
    if text.len() < MIN_CHECKED_BYTES {
        return Ok(());
    }
    // This check accepts an invalid text. The parser reports the error later.
    let Ok(tokens) = Tokenizer::new(dialect, text).tokenize() else { return Ok(()) };
    let mut depth = StatementDepth::default();
    for token in &tokens {
        depth.add_token(find_depth_effect(token));
    }
    depth.nested = depth.nested.max(find_deepest_type(&tokens));
    depth.check_limits(most_nested)
}

/// Returns the greatest depth of parentheses in the strings of a text that calls `arrow_cast`, and
/// 0 for another text. Arrow's parser of type names such as `'List(List(Int64))'` is recursive.
fn find_deepest_type(tokens: &[Token]) -> usize {
    if !tokens.iter().any(is_arrow_cast) {
        return 0;
    }
    let texts = tokens.iter().filter_map(|token| match token {
        Token::SingleQuotedString(text)
        | Token::EscapedStringLiteral(text)
        | Token::DoubleQuotedString(text) => Some(text.as_str()),
        Token::DollarQuotedString(text) => Some(text.value.as_str()),
        _ => None,
    });
    texts.map(count_nested_parentheses).max().unwrap_or_default()
}

fn is_arrow_cast(token: &Token) -> bool {
    let Token::Word(word) = token else { return false };
    let names = ["arrow_cast", "arrow_try_cast"];
    names.iter().any(|name| word.value.eq_ignore_ascii_case(name))
}

fn count_nested_parentheses(text: &str) -> usize {
    let (mut open, mut most) = (0usize, 0usize);
    for byte in text.bytes() {
        match byte {
            b'(' => open += 1,
            b')' => open = open.saturating_sub(1),
            _ => {}
        }
        most = most.max(open);
    }
    most
}

/// The effect of a token on the depth of the syntax tree.
#[derive(Clone, Copy)]
enum DepthEffect {
    /// `(`, whose content is an operand of the operators before it, as in `a + (b + c)`.
    OpenParenthesis,
    CloseParenthesis,
    OpenCase,
    CloseCase,
    /// `;`
    EndStatement,
    /// A comma, or a word such as SELECT, before an expression that is not an operand of the
    /// operators before it.
    BeginExpression,
    /// UNION or JOIN, as in `a JOIN b JOIN c`: one more relation, and the beginning of an
    /// expression.
    BeginRelation,
    /// `|>`, whose left side is a whole query.
    Pipe,
    /// AND or OR. The operators in one operand do not add to the depth of the next operand.
    Logical,
    /// `||`
    Concat,
    /// Arithmetic, which ends a sequence of casts: `a::INT + b::INT` has two sequences of one cast.
    Arithmetic,
    Comparison,
    /// XOR or EXPLAIN. Each one adds a level to the tree: `EXPLAIN EXPLAIN SELECT 1` has two.
    Nested,
    /// A cast or subscript, which binds tighter than arithmetic.
    Tight,
    /// A predicate such as IS NULL, which binds looser than arithmetic.
    Loose,
    /// BETWEEN, a predicate whose AND is not the logical operator.
    Between,
    /// A name, a literal, or a space.
    Nothing,
}

fn find_depth_effect(token: &Token) -> DepthEffect {
    match token {
        Token::LParen | Token::LBrace => DepthEffect::OpenParenthesis,
        Token::RParen | Token::RBrace => DepthEffect::CloseParenthesis,
        Token::SemiColon => DepthEffect::EndStatement,
        Token::Comma => DepthEffect::BeginExpression,
        Token::StringConcat => DepthEffect::Concat,
        Token::VerticalBarRightAngleBracket => DepthEffect::Pipe,
        Token::DoubleColon | Token::LBracket => DepthEffect::Tight,
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
        | Token::ShiftRight => DepthEffect::Arithmetic,
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
        | Token::Overlap => DepthEffect::Loose,
        Token::Eq
        | Token::DoubleEq
        | Token::Neq
        | Token::Lt
        | Token::LtEq
        | Token::Gt
        | Token::GtEq
        | Token::Spaceship => DepthEffect::Comparison,
        Token::Word(word) if word.quote_style.is_none() => find_keyword_effect(word.keyword),
        _ => DepthEffect::Nothing,
    }
}

fn find_keyword_effect(keyword: Keyword) -> DepthEffect {
    match keyword {
        Keyword::CASE => DepthEffect::OpenCase,
        Keyword::END => DepthEffect::CloseCase,
        Keyword::AND | Keyword::OR => DepthEffect::Logical,
        Keyword::AT | Keyword::COLLATE | Keyword::INTERVAL => DepthEffect::Tight,
        Keyword::BETWEEN => DepthEffect::Between,
        Keyword::XOR | Keyword::EXPLAIN => DepthEffect::Nested,
        Keyword::NOT
        | Keyword::IS
        | Keyword::LIKE
        | Keyword::ILIKE
        | Keyword::IN
        | Keyword::SIMILAR => DepthEffect::Loose,
        Keyword::UNION | Keyword::INTERSECT | Keyword::EXCEPT | Keyword::JOIN => {
            DepthEffect::BeginRelation
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
        | Keyword::ELSE => DepthEffect::BeginExpression,
        _ => DepthEffect::Nothing,
    }
}

/// The numbers of consecutive operators of each kind on one level of parentheses.
#[derive(Clone, Copy, Default)]
struct OperatorLevel {
    operators: usize,
    /// Number of casts and subscripts, which bind tighter than arithmetic.
    tight: usize,
    /// Number of predicates such as IS NULL, which bind looser than arithmetic.
    loose: usize,
    /// Number of BETWEEN whose AND is still to come.
    open_betweens: usize,
    comparisons: usize,
    balanced: usize,
    relations: usize,
}

impl OperatorLevel {
    /// Returns the counts at the beginning of an expression that is not an operand of the operators
    /// before it: 0 for all kinds of operators, except joins and unions, whose count continues.
    fn begin_expression(self) -> Self {
        Self { relations: self.relations, ..Self::default() }
    }

    /// Returns the counts after `(`. They continue from the counts before it, because the
    /// expression in parentheses is an operand of the operators before it. Only the counts of joins
    /// and unions, and of BETWEEN without AND, start again at 0.
    fn open_parenthesis(self) -> Self {
        Self { relations: 0, open_betweens: 0, ..self }
    }
}

/// The longest sequences of operators in a statement, and its deepest nesting.
#[derive(Default)]
struct StatementDepth {
    level: OperatorLevel,
    /// One entry for each open parenthesis around `level`, the outermost first: the operators
    /// counted in it so far.
    outer_levels: Vec<OperatorLevel>,
    open_cases: usize,
    /// Maximum number of parentheses and CASE around a token.
    nested: usize,
    /// The longest sequence for each of [`SEQUENCE_LIMITS`].
    longest: [usize; SEQUENCE_LIMITS.len()],
}

impl StatementDepth {
    fn add_token(&mut self, effect: DepthEffect) {
        self.nested = self.nested.max(self.outer_levels.len() + self.open_cases);
        let level = &mut self.level;
        match effect {
            DepthEffect::OpenParenthesis => {
                self.outer_levels.push(*level);
                *level = level.open_parenthesis();
            }
            DepthEffect::CloseParenthesis => {
                if let Some(outer) = self.outer_levels.pop() {
                    *level = outer;
                }
            }
            DepthEffect::OpenCase => self.open_cases += 1,
            DepthEffect::CloseCase => self.open_cases = self.open_cases.saturating_sub(1),
            DepthEffect::EndStatement => *level = OperatorLevel::default(),
            DepthEffect::BeginExpression => *level = level.begin_expression(),
            DepthEffect::BeginRelation => {
                *level = level.begin_expression();
                level.relations += 1;
            }
            DepthEffect::Pipe => level.relations += 1,
            DepthEffect::Logical if level.open_betweens > 0 => level.open_betweens -= 1,
            DepthEffect::Logical => {
                *level = OperatorLevel { balanced: level.balanced + 1, ..level.begin_expression() }
            }
            DepthEffect::Concat => level.balanced += 1,
            DepthEffect::Arithmetic => {
                level.operators += 1;
                level.tight = 0;
            }
            DepthEffect::Comparison => {
                level.operators += 1;
                level.comparisons += 1;
                level.tight = 0;
            }
            DepthEffect::Nested => level.operators += 1,
            DepthEffect::Tight => level.tight += 1,
            DepthEffect::Loose => level.loose += 1,
            DepthEffect::Between => {
                level.loose += 1;
                level.open_betweens += 1;
            }
            DepthEffect::Nothing => return,
        }
        for (longest, limit) in self.longest.iter_mut().zip(&SEQUENCE_LIMITS) {
            *longest = (*longest).max((limit.length)(level));
        }
    }

    fn check_limits(&self, most_nested: usize) -> Result<()> {
        for (longest, limit) in self.longest.iter().zip(&SEQUENCE_LIMITS) {
            check_limit(limit.most, *longest, limit.what, limit.instead)?;
        }
        check_limit(
            most_nested,
            self.nested,
            "nested parentheses or CASE",
            "move parts of the statement into WITH queries",
        )
    }
}

fn check_limit(limit: usize, found: usize, what: &str, instead: &str) -> Result<()> {
    if found > limit {
        return plan_err!(
            "the statement has {found} {what}, but at most {limit} are supported; {instead}"
        );
    }
    Ok(())
}

/// The maximum length of a sequence of operators, with the words of the error for a longer one.
struct SequenceLimit {
    length: fn(&OperatorLevel) -> usize,
    most: usize,
    what: &'static str,
    instead: &'static str,
}

const SEQUENCE_LIMITS: [SequenceLimit; 5] = [
    SequenceLimit {
        length: |level| level.operators,
        most: MAX_OPERATORS,
        what: "operators in a row",
        instead: "use a function on a list instead, as in ragged_sum([a, b, ..])",
    },
    SequenceLimit {
        length: |level| level.tight.saturating_add(level.loose),
        most: MAX_NESTED,
        what: "casts, subscripts and predicates in a row",
        instead: "compute parts of the expression in WITH, or separate them with AND",
    },
    SequenceLimit {
        length: |level| level.balanced,
        most: MAX_BALANCED,
        what: "AND, OR or || in a row",
        instead: "use x IN (..), or join a table of the values",
    },
    SequenceLimit {
        length: |level| level.relations,
        most: MAX_RELATIONS,
        what: "joins, unions or |> in a row",
        instead: "store intermediate results with CREATE TABLE .. AS SELECT",
    },
    SequenceLimit {
        length: |level| level.comparisons,
        most: MAX_COMPARISONS,
        what: "comparisons in a row",
        instead: "separate them with AND, or use x IN (..)",
    },
];

/// Length in bytes below which no text is too deep: each level takes two characters or more.
const MIN_CHECKED_BYTES: usize = 256;

/// Minimum number of operators in a sequence that is balanced.
const MIN_BALANCED: usize = 64;

/// Converts a long sequence of operands with AND, OR or `||` between them to a balanced tree.
///
/// The parser returns `((a OR b) OR c) OR d`, in which planners visit the whole left operand at
/// every operator. The operators are associative, so balancing keeps the order of the operands.
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
    if length < MIN_BALANCED {
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
