//! Reads the tokens of SQL text before it is parsed, and writes string literals.

use datafusion::logical_expr::sqlparser::dialect::Dialect;
use datafusion::logical_expr::sqlparser::keywords::Keyword;
use datafusion::logical_expr::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

/// Returns the tokens of a text without whitespace and comments. Returns `None` if the tokenizer
/// rejects the text: callers leave such a text unchanged, and the parser reports the error later.
pub(in crate::sql) fn read_tokens(text: &str, dialect: &dyn Dialect) -> Option<Vec<TokenWithSpan>> {
    let mut tokens = Tokenizer::new(dialect, text).tokenize_with_location().ok()?;
    tokens.retain(|token| !matches!(token.token, Token::Whitespace(_)));
    Some(tokens)
}

/// Whether a token is the word `word` without quotes, in upper or lower case.
pub(in crate::sql) fn is_word(token: &Token, word: &str) -> bool {
    matches!(token, Token::Word(w) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case(word))
}

/// Whether a query can begin with `word`.
pub(in crate::sql) fn begins_query(word: &str) -> bool {
    let words = ["SELECT", "WITH", "FROM", "VALUES", "TABLE"];
    words.iter().any(|known| word.eq_ignore_ascii_case(known))
}

pub(in crate::sql) fn find_keyword(token: &TokenWithSpan) -> Option<Keyword> {
    match &token.token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.keyword),
        _ => None,
    }
}

/// Returns the string literal of a text: `'it''s'` for `it's`.
pub(crate) fn quote_text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Returns a name in double quotes, with which SQL keeps its case.
pub(crate) fn quote_name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
