//! Rewrites query syntax that the parser does not accept to equivalent syntax that it accepts.

use std::borrow::Cow;

use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::logical_expr::sqlparser::ast::{
    Expr, JoinOperator, LimitClause, Query, TableWithJoins, Value,
};
use datafusion::logical_expr::sqlparser::dialect::{Dialect, DuckDbDialect};
use datafusion::logical_expr::sqlparser::keywords::Keyword;
use datafusion::logical_expr::sqlparser::tokenizer::{Location, Token, TokenWithSpan};

use crate::sql::base::tokens::{find_keyword, read_tokens};

/// Rewrites `FROM t WHERE x` to `FROM t SELECT * WHERE x`, and `* EXCEPT (a)` to `* EXCLUDE (a)`,
/// removes [NOT] MATERIALIZED from WITH, and marks `INSERT INTO t BY NAME`. Also makes the parser
/// accept a list of queries after IN, names of arguments that are keywords, such as
/// `order => 'desc'`, and `trim(TRAILING FROM s)`.
///
/// MATERIALIZED does not change the rows: a query whose rows may differ between runs is computed
/// once ([`share_ctes`](crate::sql::workarounds::subqueries::shared_rows::share_ctes)), other
/// queries may run again.
pub(in crate::sql) fn rewrite_known_forms<'a>(
    text: &'a str,
    dialect: &dyn Dialect,
) -> Cow<'a, str> {
    let lower = text.to_ascii_lowercase();
    let has_form =
        ["from", "materialized", "select", "insert", "=>"].iter().any(|word| lower.contains(word));
    // The rewrites apply only to the DuckDB dialect. A text in another dialect stays unchanged.
    if !dialect.is::<DuckDbDialect>() || !has_form {
        return Cow::Borrowed(text);
    }
    let is_plain = has_plain_from(&lower);
    if is_plain && !cfg!(debug_assertions) {
        return Cow::Borrowed(text);
    }
    let Some(tokens) = read_tokens(text, dialect) else { return Cow::Borrowed(text) };
    let tokens: Vec<&TokenWithSpan> = tokens.iter().collect();
    let mut edits = Vec::new();
    add_selects(&tokens, &mut edits);
    drop_materialized(&tokens, &mut edits);
    enclose_first_query(&tokens, &mut edits);
    quote_argument_names(&tokens, &mut edits);
    exclude_columns(&tokens, &mut edits);
    mark_by_name(&tokens, &mut edits);
    shorten_trims(&tokens, &mut edits);
    if edits.is_empty() {
        return Cow::Borrowed(text);
    }
    debug_assert!(!is_plain, "{text} has a form that has_plain_from overlooks");
    edits.sort_unstable_by_key(|edit| edit.at);
    Cow::Owned(apply_edits(text, &edits))
}

/// Parts of the forms that [`rewrite_known_forms`] rewrites, in lower case, and parts of a text
/// that make it difficult to find these forms without tokens: comments, and several queries.
const MARKS: [&str; 11] = [
    "--",
    "/*",
    "=>",
    "except",
    "insert",
    "intersect",
    "materialized",
    "trim",
    "union",
    "with",
    ";",
];

/// Whether a text in lower case is one query that begins with SELECT, with at most one FROM, which
/// is not in parentheses, and has none of the [`MARKS`]. Such a text is not rewritten, so its
/// tokens need not be read.
fn has_plain_from(lower: &str) -> bool {
    let text = lower.trim();
    let text = text.strip_suffix(';').unwrap_or(text);
    let mut froms = text.match_indices("from");
    let is_outside = |(at, _): (usize, &str)| {
        let before = &text[..at];
        before.matches('(').count() == before.matches(')').count() && !may_quote_end(before)
    };
    text.starts_with("select")
        && text.matches("select").count() == 1
        && froms.next().is_none_or(is_outside)
        && froms.next().is_none()
        && !MARKS.iter().any(|mark| text.contains(mark))
}

/// Whether a text may have a closing parenthesis within quotes: one is between two quotation marks.
fn may_quote_end(text: &str) -> bool {
    const QUOTES: [char; 4] = ['\'', '"', '`', '$'];
    let quoted = text.find(QUOTES).zip(text.rfind(QUOTES));
    quoted.is_some_and(|(first, last)| text[first..last].contains(')'))
}

/// Text to insert, or characters to replace with blanks.
pub(super) struct TextEdit {
    pub(super) at: Location,
    /// Number of characters that are replaced with blanks.
    pub(super) blank: usize,
    pub(super) insert: &'static str,
}

pub(super) fn apply_edits(text: &str, edits: &[TextEdit]) -> String {
    let mut out = String::with_capacity(text.len().saturating_add(edits.len().saturating_mul(12)));
    let mut next = edits.iter().peekable();
    for (line, number) in text.split_inclusive('\n').zip(1u64..) {
        let mut blanks = 0usize;
        for (c, column) in line.chars().zip(1u64..) {
            let here = Location { line: number, column };
            while let Some(edit) = next.next_if(|edit| edit.at == here) {
                out.push_str(edit.insert);
                blanks = edit.blank;
            }
            let blank = blanks > 0;
            blanks = blanks.saturating_sub(1);
            out.push(if blank { ' ' } else { c });
        }
    }
    out
}

/// The column that stands for BY NAME: `INSERT INTO t BY NAME SELECT ..` becomes
/// `INSERT INTO t ("INSERT BY NAME") SELECT ..`, and `by_name` replaces it with the columns of the
/// query.
pub(in crate::sql) const BY_NAME: &str = "INSERT BY NAME";

/// Removes BY POSITION from INSERT, and replaces BY NAME with the column [`BY_NAME`].
fn mark_by_name(tokens: &[&TokenWithSpan], edits: &mut Vec<TextEdit>) {
    for (at, pair) in tokens.windows(2).enumerate() {
        let [insert, into] = pair else { continue };
        if find_keyword(insert) != Some(Keyword::INSERT)
            || find_keyword(into) != Some(Keyword::INTO)
        {
            continue;
        }
        let mut rest = tokens[at.saturating_add(2)..].iter().skip_while(|token| {
            find_keyword(token) != Some(Keyword::BY)
                && matches!(token.token, Token::Word(_) | Token::Period)
        });
        let (Some(by), Some(how)) = (rest.next(), rest.next()) else { continue };
        let Token::Word(word) = &how.token else { continue };
        if find_keyword(by) != Some(Keyword::BY) || word.quote_style.is_some() {
            continue;
        }
        let insert = match word.value.to_ascii_lowercase().as_str() {
            "name" => "(\"INSERT BY NAME\") ",
            "position" => "",
            _ => continue,
        };
        edits.push(TextEdit { at: by.span.start, blank: "BY".len(), insert });
        edits.push(TextEdit { at: how.span.start, blank: word.value.len(), insert: "" });
    }
}

/// Quotes keywords before `=>`, so that the parser accepts them as names of arguments: `order =>
/// 'desc'` becomes `"order" => 'desc'`.
fn quote_argument_names(tokens: &[&TokenWithSpan], edits: &mut Vec<TextEdit>) {
    for pair in tokens.windows(2) {
        if let [name, arrow] = pair
            && arrow.token == Token::RArrow
            && find_keyword(name).is_some_and(|keyword| keyword != Keyword::NoKeyword)
        {
            for at in [name.span.start, name.span.end] {
                edits.push(TextEdit { at, blank: 0, insert: "\"" });
            }
        }
    }
}

/// Rewrites `* EXCEPT (a)` to `* EXCLUDE (a)`. The parser reads EXCEPT as a set operation.
fn exclude_columns(tokens: &[&TokenWithSpan], edits: &mut Vec<TextEdit>) {
    for (at, token) in tokens.iter().enumerate() {
        if find_keyword(token) == Some(Keyword::EXCEPT) && excludes_columns(tokens, at) {
            edits.push(TextEdit { at: token.span.start, blank: "EXCEPT".len(), insert: "EXCLUDE" });
        }
    }
}

/// Rewrites `trim(TRAILING FROM s)` to `trim(TRAILING s)`, and `trim(FROM s)` to `trim(s)`. The
/// parser accepts FROM only after the characters to remove.
fn shorten_trims(tokens: &[&TokenWithSpan], edits: &mut Vec<TextEdit>) {
    for (at, pair) in tokens.windows(2).enumerate() {
        let [trim, open] = pair else { continue };
        if find_keyword(trim) != Some(Keyword::TRIM) || open.token != Token::LParen {
            continue;
        }
        let mut rest = tokens[at.saturating_add(2)..].iter().skip_while(|token| {
            matches!(
                find_keyword(token),
                Some(Keyword::BOTH | Keyword::LEADING | Keyword::TRAILING)
            )
        });
        if let Some(from) = rest.next()
            && find_keyword(from) == Some(Keyword::FROM)
        {
            edits.push(TextEdit { at: from.span.start, blank: "FROM".len(), insert: "" });
        }
    }
}

/// Whether the EXCEPT at `at` follows a star in SELECT, and names columns, as in `* EXCEPT (a, b)`
/// and `* EXCEPT a`.
fn excludes_columns(tokens: &[&TokenWithSpan], at: usize) -> bool {
    let before = |count: usize| at.checked_sub(count).and_then(|at| tokens.get(at));
    let (Some(star), Some(start)) = (before(1), before(2)) else { return false };
    let begins_item = matches!(start.token, Token::Comma | Token::Period)
        || matches!(find_keyword(start), Some(Keyword::SELECT | Keyword::DISTINCT | Keyword::ALL));
    if star.token != Token::Mul || !begins_item {
        return false;
    }
    let is_name = |token: &Token| matches!(token, Token::Word(_));
    match tokens.get(at.saturating_add(1)..) {
        Some([open, name, end, ..]) if open.token == Token::LParen => {
            is_name(&name.token)
                && matches!(end.token, Token::Comma | Token::Period | Token::RParen)
        }
        Some([name, ..]) => match &name.token {
            Token::Word(word) => word.keyword == Keyword::NoKeyword,
            _ => false,
        },
        _ => false,
    }
}

/// The clause of a query that was read last on one level of parentheses: FROM, SELECT or neither.
#[derive(Clone, Copy, PartialEq)]
enum ClauseRead {
    Nothing,
    From,
    /// The current query has a SELECT, or `SELECT *` was inserted into it.
    Select,
}

fn add_selects(tokens: &[&TokenWithSpan], edits: &mut Vec<TextEdit>) {
    let mut levels = vec![ClauseRead::Nothing];
    for (at, token) in tokens.iter().enumerate() {
        let Some(level) = levels.last_mut() else { return };
        match &token.token {
            Token::LParen | Token::LBracket | Token::LBrace => {
                levels.push(ClauseRead::Nothing);
                continue;
            }
            Token::RParen | Token::RBracket | Token::RBrace => {
                if levels.len() > 1 {
                    levels.pop();
                }
                continue;
            }
            Token::SemiColon => {
                *level = ClauseRead::Nothing;
                continue;
            }
            _ => {}
        }
        match find_keyword(token) {
            Some(Keyword::SELECT) => {
                *level = ClauseRead::Select;
            }
            Some(Keyword::EXCEPT) if excludes_columns(tokens, at) => {}
            Some(Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT) => {
                *level = ClauseRead::Nothing
            }
            Some(Keyword::FROM) if *level == ClauseRead::Nothing && begins_query(tokens, at) => {
                *level = ClauseRead::From;
            }
            Some(Keyword::WHERE | Keyword::GROUP | Keyword::HAVING | Keyword::QUALIFY)
                if *level == ClauseRead::From && !has_select(&tokens[at..]) =>
            {
                edits.push(TextEdit { at: token.span.start, blank: 0, insert: "SELECT * " });
                *level = ClauseRead::Select;
            }
            _ => {}
        }
    }
}

fn begins_query(tokens: &[&TokenWithSpan], at: usize) -> bool {
    let Some(before) = at.checked_sub(1).and_then(|before| tokens.get(before)) else {
        return true;
    };
    match &before.token {
        // A query may begin after `)`, because the main query follows the CTEs of WITH.
        Token::LParen | Token::RParen | Token::SemiColon => true,
        _ => {
            matches!(
                find_keyword(before),
                Some(
                    Keyword::UNION
                        | Keyword::EXCEPT
                        | Keyword::INTERSECT
                        | Keyword::ALL
                        | Keyword::DISTINCT
                        | Keyword::EXPLAIN
                        | Keyword::ANALYZE
                        | Keyword::VERBOSE
                        | Keyword::AS
                )
            ) || follows_insert(&tokens[..at])
        }
    }
}

/// Whether tokens end with the beginning of an INSERT up to its query, such as
/// `INSERT INTO t BY NAME`.
fn follows_insert(tokens: &[&TokenWithSpan]) -> bool {
    let is_end = |token: &Token| matches!(token, Token::LParen | Token::RParen | Token::SemiColon);
    let mut before = tokens.iter().rev().take_while(|token| !is_end(&token.token));
    before.any(|token| find_keyword(token) == Some(Keyword::INSERT))
}

fn has_select(tokens: &[&TokenWithSpan]) -> bool {
    let mut depth = 0usize;
    for token in tokens {
        match &token.token {
            Token::LParen | Token::LBracket | Token::LBrace => depth = depth.saturating_add(1),
            Token::RParen | Token::RBracket | Token::RBrace => match depth.checked_sub(1) {
                Some(less) => depth = less,
                None => return false,
            },
            Token::SemiColon => return false,
            _ if depth > 0 => {}
            _ => match find_keyword(token) {
                Some(Keyword::SELECT) => return true,
                Some(Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT) => return false,
                _ => {}
            },
        }
    }
    false
}

fn drop_materialized(tokens: &[&TokenWithSpan], edits: &mut Vec<TextEdit>) {
    let is = |token: &&TokenWithSpan, word: Keyword| find_keyword(token) == Some(word);
    for (at, token) in tokens.iter().enumerate() {
        if !is(token, Keyword::AS) {
            continue;
        }
        match &tokens[at..] {
            [_, not, materialized, open, ..]
                if is(not, Keyword::NOT)
                    && is(materialized, Keyword::MATERIALIZED)
                    && open.token == Token::LParen =>
            {
                edits.push(TextEdit { at: not.span.start, blank: "NOT".len(), insert: "" });
                edits.push(blank_materialized(materialized));
            }
            [_, materialized, open, ..]
                if is(materialized, Keyword::MATERIALIZED) && open.token == Token::LParen =>
            {
                edits.push(blank_materialized(materialized));
            }
            _ => {}
        }
    }
}

/// Rewrites `x IN ((SELECT ..), y)` to `x IN (coalesce((SELECT ..)), y)`, which the parser accepts.
fn enclose_first_query(tokens: &[&TokenWithSpan], edits: &mut Vec<TextEdit>) {
    for (at, four) in tokens.windows(4).enumerate() {
        let [word, list, query, select] = four else { continue };
        if find_keyword(word) != Some(Keyword::IN)
            || list.token != Token::LParen
            || query.token != Token::LParen
            || !matches!(
                find_keyword(select),
                Some(Keyword::SELECT | Keyword::WITH | Keyword::FROM)
            )
        {
            continue;
        }
        let mut depth = 0usize;
        let mut after =
            tokens[at.saturating_add(3)..].iter().skip_while(|token| match token.token {
                Token::LParen => {
                    depth = depth.saturating_add(1);
                    true
                }
                Token::RParen => match depth.checked_sub(1) {
                    Some(less) => {
                        depth = less;
                        true
                    }
                    None => false,
                },
                _ => true,
            });
        if let Some(comma) = after.nth(1)
            && comma.token == Token::Comma
        {
            edits.push(TextEdit { at: query.span.start, blank: 0, insert: "coalesce(" });
            edits.push(TextEdit { at: comma.span.start, blank: 0, insert: ")" });
        }
    }
}

fn blank_materialized(token: &TokenWithSpan) -> TextEdit {
    TextEdit { at: token.span.start, blank: "MATERIALIZED".len(), insert: "" }
}

/// Rewrites `FETCH FIRST 3 ROWS ONLY` to `LIMIT 3`.
///
/// # Errors
/// If FETCH has WITH TIES or PERCENT, which LIMIT does not have, or if the query has a LIMIT, too.
pub(in crate::sql) fn limit_to_fetched(query: &mut Query) -> Result<()> {
    let Some(fetch) = query.fetch.take() else { return Ok(()) };
    if fetch.with_ties {
        return plan_err!(
            "{fetch} is not supported; write QUALIFY rank() OVER (ORDER BY x) <= 3 to get the first 3 rows and all rows with the same x as the third"
        );
    }
    if fetch.percent {
        return plan_err!(
            "{fetch} is not supported; write QUALIFY percent_rank() OVER (ORDER BY x) < 0.1 to get the first tenth of the rows"
        );
    }
    let rows = fetch.quantity.clone();
    let rows = Some(rows.unwrap_or_else(|| Expr::value(Value::Number("1".to_owned(), false))));
    match &mut query.limit_clause {
        Some(LimitClause::LimitOffset { limit, .. }) if limit.is_none() => *limit = rows,
        Some(_) => {
            return plan_err!("the query has LIMIT and {fetch}; write only one of them");
        }
        none => {
            *none =
                Some(LimitClause::LimitOffset { limit: rows, offset: None, limit_by: Vec::new() });
        }
    }
    Ok(())
}

/// Rewrites SEMI JOIN to LEFT SEMI JOIN, and ANTI JOIN to LEFT ANTI JOIN.
pub(in crate::sql) fn rewrite_semi_joins(from: &mut TableWithJoins) {
    for join in &mut from.joins {
        let taken = std::mem::replace(&mut join.join_operator, JoinOperator::CrossApply);
        join.join_operator = match taken {
            JoinOperator::Semi(by) => JoinOperator::LeftSemi(by),
            JoinOperator::Anti(by) => JoinOperator::LeftAnti(by),
            other => other,
        };
    }
}
