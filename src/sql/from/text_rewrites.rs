//! Rewrites `SUMMARIZE t` to `FROM summarize(t)`, and `f((FROM t))` to `f((SELECT * FROM t))`,
//! before the text is parsed. The parser does not support SUMMARIZE, nor a query without SELECT as
//! an expression.

use std::borrow::Cow;

use datafusion::logical_expr::sqlparser::dialect::Dialect;
use datafusion::logical_expr::sqlparser::tokenizer::{Location, Token, TokenWithSpan};

use crate::sql::base::tokens::{begins_query, is_word, read_tokens};

/// Rewrites `SUMMARIZE ..` to a query: at the start of a statement, after EXPLAIN, and at the start
/// of a subquery. Adds a SELECT to subqueries that begin with FROM and are used as expressions.
pub(crate) fn rewrite_summarize<'a>(text: &'a str, dialect: &dyn Dialect) -> Cow<'a, str> {
    let lower = text.to_ascii_lowercase();
    let begins = |(at, _): (usize, &str)| lower[..at].trim_end().ends_with('(');
    if !lower.contains("summarize") && !lower.match_indices("from").any(begins) {
        return Cow::Borrowed(text);
    }
    let Some(tokens) = read_tokens(text, dialect) else { return Cow::Borrowed(text) };
    let mut edits: Vec<(Location, usize, &str)> = Vec::new();
    for (i, token) in tokens.iter().enumerate() {
        if is_word(&token.token, "from") && stands_for_value(&tokens, i) {
            edits.push((token.span.start, 0, "SELECT * "));
            continue;
        }
        if !is_word(&token.token, "summarize") || !starts_query(&tokens[..i]) {
            continue;
        }
        let Some(next) = tokens.get(i + 1) else { continue };
        let query = match &next.token {
            // In `(summarize) AS ..` and `summarize(..)`, the word `summarize` is a name and not a
            // keyword.
            Token::LParen if i > 0 && matches!(tokens[i - 1].token, Token::LParen) => continue,
            Token::LParen => true,
            Token::Word(word) => word.quote_style.is_none() && begins_query(&word.value),
            Token::SingleQuotedString(_) | Token::DoubleQuotedString(_) => false,
            _ => continue,
        };
        let end = find_query_end(&tokens, i + 1);
        let (open, close) =
            if query { ("FROM summarize((", "))") } else { ("FROM summarize(", ")") };
        edits.push((token.span.start, "summarize".len(), open));
        if is_word(&next.token, "from") && has_own_select(&tokens[i + 1..]) != Some(true) {
            edits.push((next.span.start, 0, "SELECT * "));
        }
        edits.push((end.unwrap_or(END), 0, close));
    }
    if edits.is_empty() {
        return Cow::Borrowed(text);
    }
    edits.sort_by_key(|(at, ..)| (at.line, at.column));
    let mut out = String::with_capacity(text.len() + 32);
    let mut edits = edits.into_iter().peekable();
    let mut skip = 0usize;
    for (line, number) in text.split_inclusive('\n').zip(1u64..) {
        for (c, column) in line.chars().zip(1u64..) {
            while let Some((_, taken, put)) =
                edits.next_if(|(at, ..)| at.line == number && at.column == column)
            {
                out.push_str(put);
                skip = taken;
            }
            if skip > 0 {
                skip -= 1;
            } else {
                out.push(c);
            }
        }
    }
    // The remaining edits append to the text, on new lines: the text may end with a `--` comment.
    for (_, _, put) in edits {
        out.push('\n');
        out.push_str(put);
    }
    Cow::Owned(out)
}

/// Whether the token at index `at`, a FROM, begins a query without SELECT that is part of an
/// expression, as in `x IN (FROM t)`.
fn stands_for_value(tokens: &[TokenWithSpan], at: usize) -> bool {
    let Some(before) = at.checked_sub(2).and_then(|before| tokens.get(before)) else {
        return false;
    };
    if !matches!(tokens[at - 1].token, Token::LParen) {
        return false;
    }
    let in_expression = match &before.token {
        Token::LParen | Token::Comma | Token::Eq | Token::Neq | Token::Lt | Token::Gt => true,
        Token::LtEq | Token::GtEq | Token::Plus | Token::Minus | Token::Mul | Token::Div => true,
        Token::Word(word) if word.quote_style.is_none() => [
            "SELECT",
            "SUMMARIZE",
            "IN",
            "EXISTS",
            "ANY",
            "ALL",
            "SOME",
            "AND",
            "OR",
            "NOT",
            "WHERE",
            "THEN",
        ]
        .iter()
        .any(|w| word.value.eq_ignore_ascii_case(w)),
        _ => false,
    };
    in_expression && has_own_select(&tokens[at..]) == Some(false)
}

/// Whether a query that begins with FROM has a SELECT on its level of parentheses, as in
/// `(FROM t SELECT a)`; `None` if the text ends before the query does.
fn has_own_select(tokens: &[TokenWithSpan]) -> Option<bool> {
    let mut depth = 0usize;
    tokens.iter().find_map(|token| match &token.token {
        Token::LParen => {
            depth += 1;
            None
        }
        Token::RParen | Token::SemiColon if depth == 0 => Some(false),
        Token::RParen => {
            depth -= 1;
            None
        }
        select if depth == 0 && is_word(select, "select") => Some(true),
        _ => None,
    })
}

const END: Location = Location { line: u64::MAX, column: u64::MAX };

/// Returns the end of the statement or subquery around the token `from`, `None` for the end of the
/// text.
fn find_query_end(tokens: &[TokenWithSpan], from: usize) -> Option<Location> {
    let mut depth = 0usize;
    for token in tokens.get(from..)? {
        match token.token {
            Token::SemiColon | Token::EOF if depth == 0 => {
                return (token.token != Token::EOF).then_some(token.span.start);
            }
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => return Some(token.span.start),
            Token::RParen => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Whether a statement or subquery may begin after the tokens `before`.
fn starts_query(before: &[TokenWithSpan]) -> bool {
    match before.last().map(|t| &t.token) {
        None | Some(Token::SemiColon | Token::LParen) => true,
        Some(Token::Word(word)) => {
            let explains = ["EXPLAIN", "ANALYZE", "VERBOSE"];
            let first = match before.iter().rposition(|t| t.token == Token::SemiColon) {
                Some(at) => at + 1,
                None => 0,
            };
            explains.iter().any(|e| word.value.eq_ignore_ascii_case(e))
                && before.get(first).is_some_and(|t| is_word(&t.token, "explain"))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::sqlparser::dialect::DuckDbDialect;

    use super::*;

    #[test]
    fn summaries_are_queries() {
        let of = |text: &str| rewrite_summarize(text, &DuckDbDialect {}).into_owned();
        assert_eq!(of("SUMMARIZE t"), "FROM summarize( t\n)");
        assert_eq!(of("SUMMARIZE t; SELECT 1"), "FROM summarize( t); SELECT 1");
        assert_eq!(of("SUMMARIZE SELECT 1;"), "FROM summarize(( SELECT 1));");
        assert_eq!(of("EXPLAIN SUMMARIZE 'a.nrt';"), "EXPLAIN FROM summarize( 'a.nrt');");
        assert_eq!(of("FROM (SUMMARIZE t) s"), "FROM (FROM summarize( t)) s");
        assert_eq!(of("SUMMARIZE (SELECT 1);"), "FROM summarize(( (SELECT 1)));");
        assert_eq!(of("SUMMARIZE FROM t;"), "FROM summarize(( SELECT * FROM t));");
        assert_eq!(
            of("SUMMARIZE FROM t; SELECT 1"),
            "FROM summarize(( SELECT * FROM t)); SELECT 1"
        );
        assert_eq!(of("SUMMARIZE FROM t SELECT a"), "FROM summarize(( FROM t SELECT a\n))");
        assert_eq!(of("FROM f((FROM t))"), "FROM f((SELECT * FROM t))");
        assert_eq!(of("SELECT 1 IN (FROM t)"), "SELECT 1 IN (SELECT * FROM t)");
        for same in [
            "SELECT summarize FROM t",
            "SELECT * FROM (FROM t)",
            "SELECT f((FROM t SELECT a))",
            "SELECT trim(both 'a' FROM (s))",
            "SELECT (summarize) FROM t",
            "SELECT 1 AS summarize",
            "FROM summarize(t)",
            "SELECT 'SUMMARIZE t'",
        ] {
            assert_eq!(of(same), same);
        }
    }
}
