use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{ScalarValue, plan_datafusion_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::{BinaryExpr, Expr, Like, LogicalPlan, Operator, lit};

use crate::sql::base::expression_parts::rewrite_parts;

/// Analyzer rule: makes `x SIMILAR TO pattern` match the whole string, with `%` and `_` as in LIKE.
///
/// DataFusion 55 searches for the pattern as a regular expression: `'abc' SIMILAR TO 'b'` is true
/// and `'abc' SIMILAR TO 'a%'` is false. The rule translates a literal pattern to the equivalent
/// regular expression. This workaround is obsolete once the test `stock_similar_to_still_searches`
/// fails.
pub(in crate::sql) fn translate_similar_patterns(plan: LogicalPlan) -> Result<LogicalPlan> {
    let is_similar = |e: &Expr| matches!(e, Expr::SimilarTo(_));
    rewrite_parts(plan, is_similar, |e, _| match e {
        Expr::SimilarTo(like) => as_regex(like).map(Transformed::yes),
        e => Ok(Transformed::no(e)),
    })
}

fn as_regex(like: Like) -> Result<Expr> {
    let pattern = match &*like.pattern {
        Expr::Literal(text, _) if text.is_null() => lit(ScalarValue::Utf8(None)),
        Expr::Literal(text, _) => match text.cast_to(&DataType::Utf8)? {
            ScalarValue::Utf8(Some(text)) => lit(translate_pattern(&text, like.escape_char)?),
            other => {
                return plan_err!(
                    "the pattern {other} of SIMILAR TO is not a string; write a string literal such as 'a%'"
                );
            }
        },
        other => {
            return plan_err!(
                "the pattern of SIMILAR TO is the expression {other}; write a string literal, or use regexp_like(x, pattern), which accepts a column of regular expressions"
            );
        }
    };
    let op = if like.negated { Operator::RegexNotMatch } else { Operator::RegexMatch };
    Ok(Expr::BinaryExpr(BinaryExpr::new(like.expr, op, Box::new(pattern))))
}

/// Translates a pattern to a regular expression for the whole string: `a%` becomes `^(?s:a.*)$`.
/// Returns an error for a pattern that ends in the escape character or within brackets.
fn translate_pattern(pattern: &str, escape: Option<char>) -> Result<String> {
    let escape = escape.unwrap_or('\\');
    let mut out = String::from("^(?s:");
    let mut rest = pattern.chars().peekable();
    let mut within_class = false;
    while let Some(c) = rest.next() {
        if c == escape {
            let Some(escaped) = rest.next() else {
                return Err(plan_datafusion_err!(
                    "the pattern '{pattern}' of SIMILAR TO ends in the escape character {escape}; write a character after it"
                ));
            };
            push_literal(&mut out, escaped);
        } else if within_class {
            match c {
                ']' => {
                    within_class = false;
                    out.push(']');
                }
                // Copies a named class such as `[:alpha:]` within brackets unchanged.
                '[' if rest.peek() == Some(&':') => {
                    out.push('[');
                    for c in rest.by_ref() {
                        out.push(c);
                        if c == ']' {
                            break;
                        }
                    }
                }
                '-' | '^' => out.push(c),
                c => push_literal(&mut out, c),
            }
        } else {
            match c {
                '%' => out.push_str(".*"),
                '_' => out.push('.'),
                '(' => out.push_str("(?:"),
                '[' => {
                    within_class = true;
                    out.push('[');
                }
                '|' | '*' | '+' | '?' | '{' | '}' | ')' => out.push(c),
                c => push_literal(&mut out, c),
            }
        }
    }
    if within_class {
        return Err(plan_datafusion_err!(
            "the pattern '{pattern}' of SIMILAR TO has a [ without a closing ]; write {escape}[ to match a bracket"
        ));
    }
    out.push_str(")$");
    Ok(out)
}

/// Appends a literal character. `<` and `>` are not escaped: `\<` and `\>` match word boundaries.
fn push_literal(out: &mut String, c: char) {
    if r"\.+*?()|[]{}^$#&-~".contains(c) {
        out.push('\\');
    }
    out.push(c);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_the_standard() {
        for (pattern, regex) in [
            ("a%_", "^(?s:a.*.)$"),
            ("a.c|(b)+", r"^(?s:a\.c|(?:b)+)$"),
            (r"100\%", "^(?s:100%)$"),
            ("<a>", "^(?s:<a>)$"),
            ("[a&&b]", r"^(?s:[a\&\&b])$"),
            ("[^a-c.]{2,3}", r"^(?s:[^a-c\.]{2,3})$"),
            ("[[:digit:]x]", "^(?s:[[:digit:]x])$"),
        ] {
            assert_eq!(translate_pattern(pattern, None).unwrap(), regex);
        }
        assert_eq!(translate_pattern("#%a%", Some('#')).unwrap(), "^(?s:%a.*)$");
        assert!(translate_pattern("a#", Some('#')).is_err());
        assert!(translate_pattern("a[b", None).is_err());
    }
}
