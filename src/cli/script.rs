//! Splits SQL text into statements with their positions.

use datafusion::common::config::Dialect;
use datafusion::sql::sqlparser::tokenizer::{Location, Span, Token, Tokenizer, Whitespace};

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
    let mut splitter = StatementSplitter::new(sql);
    for token in tokens {
        match token.token {
            Token::EOF => {}
            Token::SemiColon => {
                splitter.last_line = token.span.start.line;
                splitter.end_statement();
            }
            Token::Whitespace(Whitespace::SingleLineComment { comment, .. }) => {
                splitter.add_comment(&comment, token.span.start.line);
            }
            Token::Whitespace(
                Whitespace::Space
                | Whitespace::Newline
                | Whitespace::Tab
                | Whitespace::MultiLineComment(_),
            ) => {}
            _ => splitter.add_token(token.span),
        }
    }
    let complete = splitter.current.is_none();
    splitter.end_statement();
    Ok(Script { statements: splitter.statements, complete })
}

/// Collects the statements of a script from its tokens.
struct StatementSplitter<'a> {
    lines: LineStarts<'a>,
    statements: Vec<ScriptStatement>,
    /// Start of the first token and end of the last token of the current statement; `None` before
    /// its first token. These are lines and columns, not byte offsets: to convert a position,
    /// `find_offset` reads a whole line, so only the start and the end of a statement are
    /// converted.
    current: Option<(Location, Location)>,
    /// The lines of a `--` comment, which may become the title of the next statement.
    title: Vec<String>,
    /// The number of the last line in `title`.
    title_end: u64,
    /// Line of the last token so far: a comment on the same line describes the statement of this
    /// token, not the next statement.
    last_line: u64,
}

impl<'a> StatementSplitter<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            lines: LineStarts::new(text),
            statements: Vec::new(),
            current: None,
            title: Vec::new(),
            title_end: 0,
            last_line: 0,
        }
    }

    fn add_token(&mut self, span: Span) {
        self.last_line = span.end.line;
        match &mut self.current {
            Some((_, end)) => *end = span.end,
            None => {
                self.current = Some((span.start, span.end));
                self.drop_distant_title(span.start.line);
            }
        }
    }

    fn add_comment(&mut self, comment: &str, line: u64) {
        if self.current.is_none() && line != self.last_line {
            self.drop_distant_title(line);
            self.title.push(comment.trim().to_owned());
            self.title_end = line;
        }
    }

    /// Drops the title if a blank line separates it from `line`.
    fn drop_distant_title(&mut self, line: u64) {
        if line > self.title_end + 1 {
            self.title.clear();
        }
    }

    /// Adds the current statement, if it has a token, with the title above it.
    fn end_statement(&mut self) {
        let title = std::mem::take(&mut self.title);
        if let Some((at, end)) = self.current.take() {
            let (start, end) = (self.lines.find_offset(at), self.lines.find_offset(end));
            let text = self.lines.text.get(start..end).unwrap_or_default().to_owned();
            self.statements.push(ScriptStatement { text, line: at.line, column: at.column, title });
        }
    }
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
