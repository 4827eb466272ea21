//! Splits SQL text into statements with their positions.

use datafusion::common::config::Dialect;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, Tokenizer, Whitespace};

use crate::sql::find_parser_dialect;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ScriptStatement {
    /// SQL of the statement, without the semicolon and the surrounding spaces and comments.
    pub(super) text: String,
    /// Line of the first word of the statement in the script, from 1.
    pub(super) line: u64,
    /// Column of the first word of the statement in its line, in characters, from 1.
    pub(super) column: u64,
    /// Lines of the `--` comment directly above the statement.
    pub(super) title: Vec<String>,
}

impl ScriptStatement {
    /// Returns the text with a newline in front for each line above it in the script, and a space
    /// for each character before it on its line, so that the parser reports positions in the
    /// script.
    pub(super) fn pad_to_position(&self) -> String {
        let lines = usize::try_from(self.line.saturating_sub(1)).unwrap_or(0);
        let columns = usize::try_from(self.column.saturating_sub(1)).unwrap_or(0);
        format!("{}{}{}", "\n".repeat(lines), " ".repeat(columns), self.text)
    }

    /// Returns the statement on one line, truncated to `width` characters.
    pub(super) fn to_summary(&self, width: usize) -> String {
        let mut words = String::new();
        for line in self.text.lines().filter(|line| !line.trim_start().starts_with("--")) {
            for word in line.split_whitespace() {
                if !words.is_empty() {
                    words.push(' ');
                }
                words.push_str(word);
            }
        }
        match words.char_indices().nth(width) {
            Some((end, _)) => format!("{}…", &words[..end]),
            None => words,
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Script {
    /// Statements that are not empty.
    pub(super) statements: Vec<ScriptStatement>,
    /// Whether the last statement ends with a semicolon. True if there are no statements.
    pub(super) complete: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct TokenError {
    pub(super) message: String,
    pub(super) line: u64,
    pub(super) column: u64,
}

/// Splits `sql` at its semicolons outside the quotes, comments and dollar quotes of `dialect`. A
/// quote or comment that is not closed is an error.
pub(super) fn split_statements(sql: &str, dialect: &Dialect) -> Result<Script, TokenError> {
    let dialect = find_parser_dialect(*dialect)
        .unwrap_or_else(|| Box::new(datafusion::sql::sqlparser::dialect::GenericDialect {}));
    let tokens = Tokenizer::new(dialect.as_ref(), sql).tokenize_with_location().map_err(|e| {
        TokenError { message: e.message, line: e.location.line, column: e.location.column }
    })?;
    let lines = LineStarts::new(sql);
    let mut statements = Vec::new();
    // Start of the first token and end of the last token of the current statement; `None` before
    // its first token.
    let mut open: Option<(Location, Location)> = None;
    // The lines of a `--` comment, which may become the title of the next statement, and the number
    // of the last of these lines.
    let mut title: (Vec<String>, u64) = (Vec::new(), 0);
    // Line of the last token so far: a comment on the same line describes the statement of this
    // token, not the next statement.
    let mut last_line = 0;
    let mut close = |open: &mut Option<(Location, Location)>, title: &mut Vec<String>| {
        let title = std::mem::take(title);
        if let Some((at, end)) = open.take() {
            let (start, end) = (lines.find_offset(at), lines.find_offset(end));
            let text = sql.get(start..end).unwrap_or_default().to_owned();
            statements.push(ScriptStatement { text, line: at.line, column: at.column, title });
        }
    };
    for token in tokens {
        match token.token {
            Token::EOF => {}
            Token::SemiColon => {
                last_line = token.span.start.line;
                close(&mut open, &mut title.0);
            }
            Token::Whitespace(Whitespace::SingleLineComment { comment, .. }) => {
                let line = token.span.start.line;
                if open.is_none() && line != last_line {
                    // If a blank line separates this comment line from the comment lines above, the
                    // lines above are not part of the title.
                    if line > title.1 + 1 {
                        title.0.clear();
                    }
                    title.0.push(comment.trim().to_owned());
                    title.1 = line;
                }
            }
            Token::Whitespace(
                Whitespace::Space
                | Whitespace::Newline
                | Whitespace::Tab
                | Whitespace::MultiLineComment(_),
            ) => {}
            _ => {
                last_line = token.span.end.line;
                // Stores lines and columns, not byte offsets: to convert a position, `find_offset`
                // reads a whole line, so only the start and the end of a statement are converted.
                let end = token.span.end;
                open = Some(match open {
                    None => {
                        if token.span.start.line > title.1 + 1 {
                            title.0.clear();
                        }
                        (token.span.start, end)
                    }
                    Some((at, _)) => (at, end),
                });
            }
        }
    }
    let complete = open.is_none();
    close(&mut open, &mut title.0);
    Ok(Script { statements, complete })
}

/// Start offset of each line, to convert the tokenizer's lines and columns to byte offsets.
struct LineStarts<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> LineStarts<'a> {
    fn new(text: &'a str) -> Self {
        let starts =
            std::iter::once(0).chain(text.match_indices('\n').map(|(i, _)| i + 1)).collect();
        Self { text, starts }
    }

    fn find_offset(&self, at: Location) -> usize {
        let line = usize::try_from(at.line.saturating_sub(1)).unwrap_or(usize::MAX);
        let column = usize::try_from(at.column.saturating_sub(1)).unwrap_or(usize::MAX);
        let Some(start) = self.starts.get(line).copied() else { return self.text.len() };
        let rest = &self.text[start..];
        start + rest.char_indices().nth(column).map_or(rest.len(), |(i, _)| i)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(sql: &str) -> Vec<String> {
        split_statements(sql, &Dialect::DuckDB)
            .unwrap()
            .statements
            .into_iter()
            .map(|s| s.text)
            .collect()
    }

    #[test]
    fn semicolons_in_quotes_and_comments_do_not_cut() {
        let sql = "-- a; b\nSELECT ';', \"x;y\" /* ; */ ;;\n SELECT 'it''s;' -- end;\n";
        assert_eq!(texts(sql), ["SELECT ';', \"x;y\"", "SELECT 'it''s;'"]);
        let sql = "SELECT E'it\\'s; x'; SELECT 1 /* a /* ; */ ; */ + 1";
        assert_eq!(texts(sql), ["SELECT E'it\\'s; x'", "SELECT 1 /* a /* ; */ ; */ + 1"]);
    }

    #[test]
    fn positions_are_those_of_the_script() {
        let script =
            split_statements("SELECT 'é;ü'; SELECT 1;\n\n  SELECT 2", &Dialect::DuckDB).unwrap();
        let at: Vec<_> = script.statements.iter().map(|s| (s.line, s.column)).collect();
        assert_eq!(at, [(1, 1), (1, 15), (3, 3)]);
        assert_eq!(script.statements[1].text, "SELECT 1");
        assert!(!script.complete);
        assert_eq!(script.statements[2].pad_to_position(), "\n\n  SELECT 2");
    }

    #[test]
    fn nothing_but_comments_is_complete() {
        let script = split_statements(" -- only\n /* this */ ", &Dialect::DuckDB).unwrap();
        assert_eq!(script, Script { statements: vec![], complete: true });
    }

    #[test]
    fn the_comment_right_above_a_statement_is_its_title() {
        let sql = "-- file\n\n-- One\n--  more\nSELECT 1; -- not this\n-- Two\n\nSELECT 2; -- nor this\nSELECT 3";
        let titles: Vec<_> = split_statements(sql, &Dialect::DuckDB)
            .unwrap()
            .statements
            .into_iter()
            .map(|s| s.title)
            .collect();
        assert_eq!(titles, [vec!["One", "more"], vec![], vec![]]);
    }

    #[test]
    fn an_open_quote_says_where_it_opened() {
        let broken = split_statements("SELECT 1;\nSELECT 'x", &Dialect::DuckDB).unwrap_err();
        assert_eq!((broken.line, broken.column), (2, 8));
    }

    #[test]
    fn a_summary_is_one_line() {
        let script =
            split_statements("SELECT a,\n  -- why\n   b FROM t", &Dialect::DuckDB).unwrap();
        assert_eq!(script.statements[0].to_summary(80), "SELECT a, b FROM t");
        assert_eq!(script.statements[0].to_summary(8), "SELECT a…");
    }
}
