//! Adds the parentheses that the parser requires around nested joins and grouping keys, and SQL
//! does not.

use datafusion::logical_expr::sqlparser::dialect::{Dialect, DuckDbDialect};
use datafusion::logical_expr::sqlparser::keywords::Keyword;
use datafusion::logical_expr::sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::sql::base::tokens::{find_keyword, read_tokens};
use crate::sql::statement::parsing::forms::{TextEdit, apply_edits};

/// Rewrites `a JOIN b LEFT JOIN c ON p ON q` to `a JOIN (b LEFT JOIN c ON p) ON q`, and
/// `ROLLUP (a, (b)::INT)` to `ROLLUP (a, ((b)::INT))`. Returns `None` for a text without such
/// places.
///
/// Call this function only for a text that the parser refuses, so that it changes no valid text.
/// This workaround is obsolete once the test `the_parser_still_requires_parentheses` fails.
pub(in crate::sql::statement) fn add_parentheses(
    text: &str,
    dialect: &dyn Dialect,
) -> Option<String> {
    if !dialect.is::<DuckDbDialect>() {
        return None;
    }
    let tokens = read_tokens(text, dialect)?;
    let tokens: Vec<&TokenWithSpan> = tokens.iter().collect();
    let mut edits = Vec::new();
    enclose_nested_joins(&tokens, &mut edits);
    enclose_grouping_keys(&tokens, &mut edits);
    if edits.is_empty() {
        return None;
    }
    edits.sort_unstable_by_key(|edit| edit.at);
    Some(apply_edits(text, &edits))
}

fn insert_before(token: &TokenWithSpan, insert: &'static str) -> TextEdit {
    TextEdit { at: token.span.start, blank: 0, insert }
}

/// A JOIN whose ON or USING has not been read yet.
struct OpenJoin<'a> {
    /// The first token of the right side.
    right: &'a TokenWithSpan,
    /// Whether the right side is a join.
    is_nested: bool,
}

/// The joins of the current FROM on one level of parentheses.
#[derive(Default)]
struct JoinLevel<'a> {
    open: Vec<OpenJoin<'a>>,
    edits: Vec<TextEdit>,
}

impl<'a> JoinLevel<'a> {
    /// Reads a JOIN, which is the last of the tokens `read`, and is followed by its right side.
    fn open_join(&mut self, read: &[&TokenWithSpan], right: Option<&'a TokenWithSpan>) {
        if let Some(outer) = self.open.last_mut() {
            outer.is_nested = true;
        }
        if let Some(right) = right
            && takes_condition(read)
        {
            self.open.push(OpenJoin { right, is_nested: false });
        }
    }

    /// Reads ON or USING, which belongs to the last JOIN that has no condition yet.
    fn close_join(&mut self, condition: &TokenWithSpan) {
        if let Some(join) = self.open.pop()
            && join.is_nested
        {
            self.edits.push(insert_before(join.right, "("));
            self.edits.push(insert_before(condition, ") "));
        }
    }

    /// Ends FROM. Its edits are dropped if a JOIN has no condition, because such a statement is an
    /// error.
    fn end_from(&mut self, edits: &mut Vec<TextEdit>) {
        if self.open.is_empty() {
            edits.append(&mut self.edits);
        }
        self.open.clear();
        self.edits.clear();
    }
}

/// Whether the join at the end of the tokens takes ON or USING: CROSS JOIN and NATURAL JOIN do not.
fn takes_condition(read: &[&TokenWithSpan]) -> bool {
    use Keyword::{ANTI, CROSS, FULL, INNER, JOIN, LEFT, NATURAL, OUTER, RIGHT, SEMI};
    let mut words = read.iter().rev().map(|token| find_keyword(token));
    let kind = words.find(|word| {
        !matches!(word, Some(ANTI | FULL | INNER | JOIN | LEFT | OUTER | RIGHT | SEMI))
    });
    !matches!(kind, Some(Some(CROSS | NATURAL)))
}

fn enclose_nested_joins(tokens: &[&TokenWithSpan], edits: &mut Vec<TextEdit>) {
    use Keyword::{
        EXCEPT, FETCH, GROUP, HAVING, INTERSECT, JOIN, LIMIT, OFFSET, ON, ORDER, QUALIFY, SELECT,
        SET, UNION, USING, VALUES, WHERE, WINDOW,
    };
    let mut levels = vec![JoinLevel::default()];
    let mut after_period = false;
    for (at, token) in tokens.iter().enumerate() {
        // In `t.on`, the word after the period is a column and not the keyword ON.
        let is_column = std::mem::replace(&mut after_period, token.token == Token::Period);
        match &token.token {
            Token::LParen | Token::LBracket | Token::LBrace => {
                levels.push(JoinLevel::default());
                continue;
            }
            Token::RParen | Token::RBracket | Token::RBrace => {
                if levels.len() > 1
                    && let Some(mut level) = levels.pop()
                {
                    level.end_from(edits);
                }
                continue;
            }
            _ => {}
        }
        let Some(level) = levels.last_mut() else { return };
        if matches!(token.token, Token::Comma | Token::SemiColon) {
            level.end_from(edits);
            continue;
        }
        match find_keyword(token) {
            _ if is_column => {}
            Some(JOIN) => {
                level.open_join(&tokens[..=at], tokens.get(at.saturating_add(1)).copied());
            }
            Some(ON | USING) => level.close_join(token),
            Some(
                EXCEPT | FETCH | GROUP | HAVING | INTERSECT | LIMIT | OFFSET | ORDER | QUALIFY
                | SELECT | SET | UNION | VALUES | WHERE | WINDOW,
            ) => level.end_from(edits),
            _ => {}
        }
    }
    for level in &mut levels {
        level.end_from(edits);
    }
}

/// Encloses each key of ROLLUP, CUBE and GROUPING SETS that begins with a parenthesis and continues
/// after the closing one, such as `(b)::INT`. The parser takes the parenthesis for the beginning of
/// a tuple.
fn enclose_grouping_keys(tokens: &[&TokenWithSpan], edits: &mut Vec<TextEdit>) {
    for (at, pair) in tokens.windows(2).enumerate() {
        let [word, open] = pair else { continue };
        let is_set = match find_keyword(word) {
            Some(Keyword::ROLLUP | Keyword::CUBE) => true,
            Some(Keyword::SETS) => {
                let before = at.checked_sub(1).and_then(|before| tokens.get(before));
                before.is_some_and(|before| find_keyword(before) == Some(Keyword::GROUPING))
            }
            _ => false,
        };
        if is_set && open.token == Token::LParen {
            enclose_keys(&tokens[at.saturating_add(2)..], edits);
        }
    }
}

/// Encloses the keys of a list, whose opening parenthesis is in front of the tokens.
fn enclose_keys(mut tokens: &[&TokenWithSpan], edits: &mut Vec<TextEdit>) {
    while let Some(end) = find_end_of_key(tokens) {
        let (key, rest) = tokens.split_at(end);
        let [after, next @ ..] = rest else { return };
        if let [first, inner @ ..] = key
            && first.token == Token::LParen
            && find_closing(inner).is_some_and(|at| at.saturating_add(1) < inner.len())
        {
            edits.push(insert_before(first, "("));
            edits.push(insert_before(after, ")"));
        }
        if after.token != Token::Comma {
            return;
        }
        tokens = next;
    }
}

/// Returns the position of the comma or parenthesis that ends the first key of a list.
fn find_end_of_key(tokens: &[&TokenWithSpan]) -> Option<usize> {
    let closing = find_closing(tokens)?;
    let mut depth = 0usize;
    tokens[..closing]
        .iter()
        .position(|token| {
            match &token.token {
                Token::LParen | Token::LBracket | Token::LBrace => depth = depth.saturating_add(1),
                Token::RParen | Token::RBracket | Token::RBrace => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && token.token == Token::Comma
        })
        .or(Some(closing))
}

/// Returns the position of the parenthesis that closes the one in front of the tokens.
fn find_closing(tokens: &[&TokenWithSpan]) -> Option<usize> {
    let mut depth = 0usize;
    tokens.iter().position(|token| match &token.token {
        Token::LParen | Token::LBracket | Token::LBrace => {
            depth = depth.saturating_add(1);
            false
        }
        Token::RParen | Token::RBracket | Token::RBrace => match depth.checked_sub(1) {
            Some(less) => {
                depth = less;
                false
            }
            None => true,
        },
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::sqlparser::parser::Parser;

    use super::*;

    #[test]
    fn joins_and_keys_are_enclosed() {
        let nested = [
            ("FROM a JOIN b JOIN c ON p ON q", "FROM a JOIN (b JOIN c ON p ) ON q"),
            (
                "FROM a JOIN b JOIN c\nJOIN d ON p USING (q) ON r WHERE s",
                "FROM a JOIN (b JOIN (c\nJOIN d ON p ) USING (q) ) ON r WHERE s",
            ),
            (
                "FROM a JOIN b ON o JOIN c CROSS JOIN d ON p, e LEFT JOIN f NATURAL LEFT JOIN g ON q",
                "FROM a JOIN b ON o JOIN (c CROSS JOIN d ) ON p, e LEFT JOIN (f NATURAL LEFT JOIN g ) ON q",
            ),
            (
                "FROM (a JOIN (SELECT 1) b JOIN c ON p ON q) JOIN d ON r",
                "FROM (a JOIN ((SELECT 1) b JOIN c ON p ) ON q) JOIN d ON r",
            ),
            ("GROUP BY ROLLUP (a, (b)::INT)", "GROUP BY ROLLUP (a, ((b)::INT))"),
            (
                "GROUP BY CUBE ((a, b), (a) + (b), c), GROUPING SETS ((), (a)[1], f(a, (b)))",
                "GROUP BY CUBE ((a, b), ((a) + (b)), c), GROUPING SETS ((), ((a)[1]), f(a, (b)))",
            ),
        ];
        for (text, enclosed) in nested {
            assert_eq!(add_parentheses(text, &DuckDbDialect).as_deref(), Some(enclosed), "{text}");
        }
        for text in [
            "FROM a JOIN b ON p JOIN c USING (q)",
            "FROM a JOIN b JOIN c ON p",
            "FROM a JOIN b JOIN c JOIN d ON p ON q",
            "FROM a JOIN b, c JOIN d ON p ON q",
            "GROUP BY ROLLUP (a, (b), ((c)::INT))",
            "SELECT DISTINCT ON (a) x FROM a CROSS JOIN b",
            "GROUP BY ROLLUP (a, (b)",
        ] {
            assert_eq!(add_parentheses(text, &DuckDbDialect), None, "{text}");
        }
    }

    #[test]
    fn the_parser_still_requires_parentheses() {
        for text in [
            "SELECT * FROM a JOIN b RIGHT JOIN c ON b.x = c.x ON a.x = c.x",
            "SELECT a FROM t GROUP BY ROLLUP (a, (b)::INT)",
        ] {
            let parse = |text: &str| Parser::parse_sql(&DuckDbDialect, text);
            assert!(parse(text).is_err(), "{text}");
            let enclosed = add_parentheses(text, &DuckDbDialect).unwrap();
            assert!(parse(&enclosed).is_ok(), "{enclosed}");
        }
    }
}
