//! Finds the position of an error in a script, and shows the line with a caret below the position.

use std::borrow::Cow;
use std::path::Path;

use datafusion::common::config::Dialect;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::files::is_meds_root;
use super::output::cut_to_width;
use super::script::{ScriptStatement, TokenError};
use crate::access;
use crate::io::meds_torch::TensorizedCohort;
use crate::sql::find_parser_dialect;
#[cfg(feature = "cloud")]
use crate::sql::hide_credentials;

/// Maximum width at which an error message shows a line of the script, if the width of the terminal
/// is unknown.
const DEFAULT_WIDTH: usize = 76;
/// Lower limit of the maximum width at which a message shows a line, even if the terminal is
/// narrower.
const LEAST_WIDTH: usize = 20;
/// Number of terminal columns that a message leaves free around a line of the script: two before
/// the line and two after it.
const MARGIN: usize = 4;

/// Adds the position in a script to error messages. The name of the script is empty in the shell.
pub(super) struct ScriptErrors<'a> {
    pub(super) name: &'a str,
    pub(super) text: &'a str,
    pub(super) dialect: Dialect,
    /// Maximum width, in terminal columns, at which a message shows a line of the script. A longer
    /// line is cut around the caret.
    pub(super) width: usize,
}

/// Returns the maximum width at which a message shows a line of a script. `columns` is the width of
/// the terminal, if known.
pub(super) fn choose_width(columns: Option<usize>) -> usize {
    columns.map_or(DEFAULT_WIDTH, |columns| columns.saturating_sub(MARGIN).max(LEAST_WIDTH))
}

impl ScriptErrors<'_> {
    /// Returns the message to print for the tokenizer error `e`: position, text, and the line of
    /// the script with a caret below the position.
    pub(super) fn format_token_error(&self, e: &TokenError) -> String {
        let at = Location { line: e.line, column: e.column };
        format!("{}{}{}", self.format_prefix(at, true), e.message, self.show_line(at))
    }

    /// Returns the message of a failed statement: the position of the error, its text, and below
    /// them the line of the script with a caret. If the position is not found, the message ends
    /// with the statement, on one line and cut to 100 characters.
    pub(super) fn format_statement_error(
        &self,
        statement: &ScriptStatement,
        message: &str,
    ) -> String {
        let hint = hint_folder(message).or_else(|| self.hint_shell(statement)).unwrap_or_default();
        // Users write names of tables without the default schema, so the message omits it.
        let message = &message.replace("table 'datafusion.public.", "table '");
        let place = self.find_place(statement, message);
        // If the statement's options have credentials, the token in the parser's `found: TOKEN` may
        // be one of them, so dots replace it.
        let message = match hide_credentials(&statement.text) {
            Cow::Owned(_) => Cow::Owned(hide_found_token(message)),
            Cow::Borrowed(_) => Cow::Borrowed(message.as_str()),
        };
        match place {
            Some(at) => {
                let message = remove_location(&message);
                format!("{}{message}{hint}{}", self.format_prefix(at, true), self.show_line(at))
            }
            None => {
                let at = Location { line: statement.line, column: statement.column };
                let summary = statement.to_summary(100);
                let summary = hide_credentials(&summary);
                format!("{}{message}{hint}\n  in: {summary}", self.format_prefix(at, false))
            }
        }
    }

    /// Returns a hint on how to open the shell if `statement` in a script begins with a command of
    /// the shell, such as `.tables`. Returns `None` for other statements, and within the shell.
    fn hint_shell(&self, statement: &ScriptStatement) -> Option<String> {
        let command = statement.text.split_whitespace().next()?;
        let is_command = command.len() > 1 && command.starts_with('.') && !self.name.is_empty();
        is_command.then(|| format!("; {command} is a command of the shell, which serrate -i opens"))
    }

    /// Returns the start of a message: `x.sql:3:7: ` or, if `with_column` is false, `x.sql:3: `. In
    /// the shell, returns `line 3: ` if the input has several lines, otherwise nothing.
    fn format_prefix(&self, at: Location, with_column: bool) -> String {
        match (self.name, with_column) {
            ("", _) if self.text.trim_end().contains('\n') => format!("line {}: ", at.line),
            ("", _) => String::new(),
            (name, true) => format!("{name}:{}:{}: ", at.line, at.column),
            (name, false) => format!("{name}:{}: ", at.line),
        }
    }

    fn show_line(&self, at: Location) -> String {
        let Some(index) = at.line.checked_sub(1) else { return String::new() };
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        let Some(line) = self.text.lines().nth(index) else { return String::new() };
        // If an earlier line of the statement names an option with a credential, the value of this
        // option may be on line `at`. Then the line is not shown.
        let earlier: Vec<&str> = self.text.lines().take(index).collect();
        let mut same = earlier.iter().rev().take_while(|line| !line.trim_end().ends_with(';'));
        if same.any(|line| matches!(hide_credentials(line), Cow::Owned(_))) {
            return String::new();
        }
        let line = hide_credentials(line);
        let column = usize::try_from(at.column.saturating_sub(1)).unwrap_or(usize::MAX);
        let plain = |c: char| if c.is_control() { ' ' } else { c };
        let before: String = line.chars().take(column).map(plain).collect();
        let after: String = line.chars().skip(column).map(plain).collect();
        let (before, after) = cut_around(before.trim_start(), after.trim_end(), self.width);
        format!("\n  {before}{after}\n  {}^", " ".repeat(before.width()))
    }

    fn find_place(&self, statement: &ScriptStatement, message: &str) -> Option<Location> {
        let dialect = find_parser_dialect(self.dialect)?;
        let tokens = Tokenizer::new(dialect.as_ref(), &statement.pad_to_position())
            .tokenize_with_location()
            .ok()?;
        let tokens: Vec<&TokenWithSpan> =
            tokens.iter().filter(|t| !matches!(t.token, Token::Whitespace(_))).collect();
        let first = message.lines().next().unwrap_or(message);
        if let Some(at) = find_reported_location(first) {
            let found = first.split_once("found: ").map(|(_, found)| found);
            let found = found.and_then(|found| found.split_once(" at Line: ")).map(|(t, _)| t);
            return match found {
                Some(found) => find_token_near(&tokens, found, at),
                None => Some(at),
            };
        }
        if first.ends_with("found: EOF") {
            return tokens.iter().rev().find(|t| t.token != Token::EOF).map(|t| t.span.end);
        }
        let named =
            find_named_places(first).into_iter().find_map(|named| named.find_token(&tokens));
        named.or_else(|| {
            find_named_symbols(first).iter().find_map(|symbol| symbol.find_only_token(&tokens))
        })
    }
}

/// Returns `text`, a statement or a line, unchanged: without the feature `cloud`, no option has
/// credentials.
#[cfg(not(feature = "cloud"))]
fn hide_credentials(text: &str) -> Cow<'_, str> {
    text.into()
}

/// Shortens a line that is wider than `width` terminal columns: `before` is its text before the
/// caret, and `after` the text from the caret on. Returns both, with `…` in place of the start of
/// `before`, the end of `after`, or both.
fn cut_around(before: &str, after: &str, width: usize) -> (String, String) {
    let most = width.saturating_sub(after.width().min(width / 2));
    let before = match before.width() > most {
        true => format!("…{}", take_last_columns(before, most.saturating_sub(1))),
        false => before.to_owned(),
    };
    let room = width.saturating_sub(before.width());
    (before, cut_to_width(after.to_owned(), room))
}

fn take_last_columns(text: &str, width: usize) -> String {
    let mut used = 0;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used <= width
    };
    let kept: Vec<char> = text.chars().rev().take_while(fits).collect();
    kept.into_iter().rev().collect()
}

/// The words that precede the line number and the column number of a position in a message. The
/// parser writes `at Line: 3, Column: 4`, and Serrate `at line 3, column 4`.
const LOCATIONS: [(&str, &str); 2] = [(" at Line: ", ", Column: "), (" at line ", ", column ")];

/// Splits a message at the position that it reports, as in `.. at Line: 3, Column: 4`, into the
/// text before it, the position, and the text after it. Returns `None` if the message reports no
/// position.
fn split_location(message: &str) -> Option<(&str, Location, &str)> {
    LOCATIONS.into_iter().find_map(|(line, column)| {
        let (before, location) = message.rsplit_once(line)?;
        let (line, rest) = location.split_once(column)?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (column, after) = rest.split_at(digits);
        Some((before, Location { line: line.parse().ok()?, column: column.parse().ok()? }, after))
    })
}

/// Replaces the token in `found: TOKEN at Line: ..`, a message of the parser, by dots.
fn hide_found_token(message: &str) -> String {
    let Some((before, found)) = message.split_once("found: ") else { return message.to_owned() };
    let ends = LOCATIONS.iter().filter_map(|(line, _)| found.find(line));
    let (_, after) = found.split_at(ends.min().unwrap_or(found.len()));
    format!("{before}found: ..{after}")
}

/// Returns the position that a message of the parser or of Serrate reports, such as line 3 and
/// column 4 for `.. at Line: 3, Column: 4`, or `None` if it reports none.
fn find_reported_location(message: &str) -> Option<Location> {
    split_location(message).map(|(_, location, _)| location)
}

/// Removes the position from a message, because the caret below the message shows it.
fn remove_location(message: &str) -> String {
    match split_location(message) {
        Some((before, _, after)) => format!("{before}{after}"),
        None => message.to_owned(),
    }
}

/// Returns the position of the token `found`, which the parser reports at the position `at`. `at`
/// may be too far right, because Serrate inserts words before it parses a statement: `FROM t`
/// becomes `FROM t SELECT *`. Therefore, searches the line from `at` to the left. Returns `None` if
/// the token is not there.
fn find_token_near(tokens: &[&TokenWithSpan], found: &str, at: Location) -> Option<Location> {
    let places = tokens.iter().filter(|t| t.token.to_string() == found).map(|t| t.span.start);
    places
        .filter(|place| place.line == at.line && place.column <= at.column)
        .max_by_key(|p| p.column)
}

/// The name of a column, table or function that an error message mentions. The caret points to this
/// name in the statement.
#[derive(Debug, PartialEq, Eq)]
struct NamedPlace {
    qualifier: Option<String>,
    name: String,
    kind: NameKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NameKind {
    Column,
    Table,
    Function,
}

fn find_named_places(message: &str) -> Vec<NamedPlace> {
    let quoted = |start: &str, end: char| {
        let (_, rest) = message.split_once(start)?;
        Some(rest.split_once(end)?.0.to_owned())
    };
    let mut found = Vec::new();
    if let Some((_, rest)) = message.split_once("No field named ") {
        let end = rest.find(". ").or_else(|| rest.strip_suffix('.').map(str::len));
        let name = &rest[..end.unwrap_or(rest.len())];
        let parts: Vec<String> =
            split_qualified(name).into_iter().map(|part| part.replace("\"\"", "\"")).collect();
        if let Some((name, qualifier)) = parts.split_last() {
            let (name, qualifier) = (name.clone(), qualifier.last().cloned());
            found.push(NamedPlace { qualifier, name, kind: NameKind::Column });
        }
    }
    if let Some(path) = quoted("table '", '\'').filter(|_| message.contains("' not found")) {
        // `path` may be a file name with dots, `x.nrt`, or a qualified name, `s.t`. Therefore, the
        // statement is searched for `path`, and then for the part after its last dot.
        let last = path.rsplit('.').next().unwrap_or(&path).to_owned();
        for name in [path, last] {
            found.push(NamedPlace { qualifier: None, name, kind: NameKind::Table });
        }
    }
    let function = |name: String| NamedPlace { qualifier: None, name, kind: NameKind::Function };
    found.extend(quoted("there is no function ", ';').map(function));
    found.extend(quoted("Invalid function '", '\'').map(function));
    let text = message.strip_prefix("Error during planning: ").unwrap_or(message);
    let text = text.strip_prefix("Execution error: ").unwrap_or(text);
    let word = text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len());
    // If a message begins with the name of a function, as in `ragged_sum: ..`, the caret points to
    // a call of this function.
    let is_name = word > 2 && !text.starts_with("USING ");
    found.extend(is_name.then(|| function(text[..word].to_owned())));
    // The statement may call the function by an alias without `_`: `datediff` for `date_diff`.
    let has_alias = is_name && text[..word].contains('_');
    found.extend(has_alias.then(|| function(text[..word].replace('_', ""))));
    found
}

/// An operator, keyword, literal or function that an error message mentions. The caret points to it
/// if the statement contains it only once.
#[derive(Debug, PartialEq, Eq)]
enum NamedSymbol {
    /// An operator, a keyword or a number, as written in the statement.
    Word(String),
    /// The content of a string literal.
    Text(String),
    /// Consecutive keywords.
    Phrase(Vec<String>),
    /// The one keyword, operator or function of this list that the statement contains.
    OneOf(&'static [&'static str]),
    /// The name of a function that the statement calls.
    Call(String),
}

/// The words that precede a literal of the statement in messages of DataFusion and Arrow, such as
/// `Cannot cast string 'x' ..`, and the quote that follows the literal.
const QUOTED_TEXTS: [(&str, char); 6] = [
    ("cannot read '", '\''),
    ("Error parsing timestamp from '", '\''),
    ("Cannot cast string '", '\''),
    ("granularity: '", '\''),
    ("Invalid input syntax for type interval: \"", '"'),
    ("error parsing date: '", '\''),
];

/// The words that precede an operator in messages of DataFusion and Arrow, such as `comparison
/// operation Int64 == Utf8`. The statement is searched for the operator.
const OPERATIONS: [&str; 2] = ["arithmetic expression ", "comparison operation "];

/// Operators, functions and keywords that can cause a message `bitwise operators ..`. The caret
/// points to the one that the statement contains.
const BITWISE: [&str; 12] = [
    "|",
    "&",
    "<<",
    ">>",
    "make_timestamp",
    "to_years",
    "to_months",
    "to_weeks",
    "to_days",
    "to_hours",
    "to_minutes",
    "INTERVAL",
];

fn find_named_symbols(message: &str) -> Vec<NamedSymbol> {
    let after = |start: &str| message.split_once(start).map(|(_, rest)| rest);
    let first_word = |rest: &str| rest.split([' ', '\'', ',', ';']).next().map(str::to_owned);
    let mut found = Vec::new();
    for (start, quote) in QUOTED_TEXTS {
        let text = after(start).and_then(|rest| rest.split_once(quote));
        found.extend(text.map(|(text, _)| NamedSymbol::Text(text.to_owned())));
    }
    // The operator follows the first space outside parentheses: the type before the operator may
    // have spaces in parentheses, as in `Timestamp(µs, "UTC")`.
    let operators = OPERATIONS.into_iter().filter_map(after).filter_map(|rest| {
        let mut depth = 0_usize;
        let end = rest.find(|c: char| {
            match c {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            c == ' ' && depth == 0
        })?;
        first_word(&rest[end + 1..])
    });
    found.extend(operators.map(NamedSymbol::Word));
    let starts = ["Unary operator '", "): operator ", "out of bounds, specified: "];
    let words = starts.into_iter().filter_map(after).filter_map(first_word);
    found.extend(words.map(NamedSymbol::Word));
    if let Some(value) = after(" value '").filter(|_| message.ends_with("' is out of range")) {
        found.extend(first_word(value).map(NamedSymbol::Word));
    }
    let format = message.strip_prefix("the format ").and_then(first_word);
    found.extend(format.map(NamedSymbol::Word));
    let kinds = [
        ("in LIKE expression", "LIKE"),
        ("in CASE WHEN expression", "CASE"),
        ("non-boolean predicate", "WHERE"),
        ("Incompatible inputs for Union", "UNION"),
        ("division by zero", "/"),
    ];
    let named = kinds.into_iter().filter(|(said, _)| message.contains(said));
    found.extend(named.map(|(_, word)| NamedSymbol::Word(word.to_owned())));
    let groups: [(&str, &[&str]); 4] = [
        ("bitwise operators", &BITWISE),
        ("WHERE, HAVING and QUALIFY need", &["WHERE", "HAVING", "QUALIFY"]),
        ("list_contains and = ANY search", &["ANY"]),
        ("|| appends", &["||"]),
    ];
    let named = groups.into_iter().filter(|(said, _)| message.starts_with(said));
    found.extend(named.map(|(_, words)| NamedSymbol::OneOf(words)));
    if let Some((clause, _)) = message.split_once(" is not supported") {
        let is_keyword = |w: &&str| w.len() > 1 && w.chars().all(|c| c.is_ascii_uppercase());
        let words = clause.strip_prefix("the clause ").unwrap_or(clause).split(' ');
        let words: Vec<String> = words.take_while(is_keyword).map(str::to_owned).collect();
        found.extend((!words.is_empty()).then_some(NamedSymbol::Phrase(words)));
    }
    // A message about a file begins with its name, which the statement has as a string literal.
    if let Some((file, _)) = message.split_once(": ") {
        found.push(NamedSymbol::Text(file.to_owned()));
    }
    found.extend(find_named_calls(message).map(NamedSymbol::Call));
    found
}

/// Returns the words in a message that may be names of functions: outside quotes, words with `_`
/// and words before `(`. Reads only up to the first `;`, because the rest is advice.
fn find_named_calls(message: &str) -> impl Iterator<Item = String> {
    let problem = message.split(';').next().unwrap_or(message);
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut names = Vec::new();
    for (at, plain) in problem.split(['\'', '"']).enumerate() {
        let mut rest = plain;
        while at.is_multiple_of(2) && !rest.is_empty() {
            let end = rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            if word.contains('_') || !word.is_empty() && after.starts_with('(') {
                names.push(word.to_owned());
            }
            rest = after.trim_start_matches(|c: char| !is_part(c));
        }
    }
    names.into_iter()
}

impl NamedSymbol {
    /// Returns the position of the symbol in `tokens`, the statement. Returns `None` if the symbol
    /// does not occur, or occurs more than once: the message does not say which occurrence it
    /// means.
    fn find_only_token(&self, tokens: &[&TokenWithSpan]) -> Option<Location> {
        let is = |token: Option<&&TokenWithSpan>, word: &str| match token.map(|t| &t.token) {
            None | Some(Token::SingleQuotedString(_)) => false,
            Some(found) => found.to_string().eq_ignore_ascii_case(word),
        };
        let mut places = (0..tokens.len()).filter(|at| match self {
            Self::Text(text) => match tokens.get(*at).map(|t| &t.token) {
                Some(Token::SingleQuotedString(found)) => text == found,
                _ => false,
            },
            Self::Word(word) => is(tokens.get(*at), word),
            Self::Phrase(words) => (*at..).zip(words).all(|(at, word)| is(tokens.get(at), word)),
            Self::OneOf(words) => words.iter().any(|word| is(tokens.get(*at), word)),
            Self::Call(name) => is(tokens.get(*at), name) && is(tokens.get(at + 1), "("),
        });
        match (places.next(), places.next()) {
            (Some(only), None) => tokens.get(only).map(|t| t.span.start),
            _ => None,
        }
    }
}

/// Splits a name at dots outside quotes, and removes the quotes: `a."b.c"` becomes `a` and `b.c`.
fn split_qualified(name: &str) -> Vec<String> {
    let (mut parts, mut quoted) = (vec![String::new()], false);
    for c in name.chars() {
        match (c, parts.last_mut()) {
            ('"', _) => quoted = !quoted,
            ('.', _) if !quoted => parts.push(String::new()),
            (c, Some(part)) => part.push(c),
            _ => {}
        }
    }
    parts
}

impl NamedPlace {
    /// Returns the position of the first token that equals this name and is not an alias after AS,
    /// or `None` if there is none. If the name has a qualifier, as in `t.x`, the qualifier and a
    /// dot must precede the token. After the name of a function, `(` must follow; after any other
    /// name, it must not follow.
    fn find_token(&self, tokens: &[&TokenWithSpan]) -> Option<Location> {
        let text = |token: &Token| match token {
            Token::Word(word) => Some(word.value.clone()),
            Token::SingleQuotedString(text) if self.kind == NameKind::Table => Some(text.clone()),
            _ => None,
        };
        let is = |at: usize, name: &str| {
            tokens
                .get(at)
                .and_then(|t| text(&t.token))
                .is_some_and(|t| t.eq_ignore_ascii_case(name))
        };
        let token = |at: usize| tokens.get(at).map(|t| &t.token);
        let mut places = (0..tokens.len()).filter(|at| {
            let called = token(at + 1) == Some(&Token::LParen);
            let qualified = match (&self.qualifier, at.checked_sub(2)) {
                (None, _) => true,
                (Some(qualifier), Some(before)) => {
                    is(before, qualifier) && token(at - 1) == Some(&Token::Period)
                }
                (Some(_), None) => false,
            };
            let alias = at.checked_sub(1).is_some_and(|before| is(before, "as"));
            is(*at, &self.name)
                && qualified
                && !alias
                && called == (self.kind == NameKind::Function)
        });
        places.next().and_then(|at| tokens.get(at)).map(|t| t.span.start)
    }
}

/// Returns a hint on how to read a folder if `message` says that a table is not found, and its name
/// is the path of a folder, as in `FROM data`. Otherwise returns `None`.
fn hint_folder(message: &str) -> Option<String> {
    let (_, name) = message.split_once("table 'datafusion.public.")?;
    let (name, _) = name.split_once("' not found")?;
    let folder = Path::new(name);
    if !access::is_dir(folder) {
        return None;
    }
    Some(match TensorizedCohort::is_at(folder) || is_meds_root(folder) {
        true => format!("; {name} is a MEDS folder; read it as meds('{name}')"),
        false => format!("; {name} is a folder; read its files as '{name}/'"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::script::split_statements;

    fn describe_error(name: &str, text: &str, message: &str) -> String {
        let script = ScriptErrors { name, text, dialect: Dialect::DuckDB, width: DEFAULT_WIDTH };
        let parts = split_statements(text, &Dialect::DuckDB).unwrap();
        script.format_statement_error(parts.statements.last().unwrap(), message)
    }

    #[test]
    fn the_place_that_the_parser_reports_has_a_caret() {
        let message = "SQL: Expected: an SQL statement, found: SELEC at Line: 3, Column: 4";
        assert_eq!(
            describe_error("q.sql", "SELECT 1;\n\n   SELEC 2;", message),
            "q.sql:3:4: SQL: Expected: an SQL statement, found: SELEC\n  SELEC 2;\n  ^"
        );
        // The parser reads `FROM t SELECT * WHERE ) ..`, so the column that it reports is 9 too
        // large.
        let message = "SQL: Expected: an expression, found: ) at Line: 1, Column: 23; try x";
        let said = describe_error("", "FROM t WHERE ) = 2;", message);
        assert!(said.starts_with("SQL: Expected: an expression, found: ); try x\n"), "{said}");
        assert!(said.ends_with(&format!("= 2;\n{}^", " ".repeat(15))), "{said}");
        let message = "SQL: PIVOT at line 1, column 1 is not supported: write x";
        assert_eq!(
            describe_error("", "PIVOT t ON a;", message),
            "SQL: PIVOT is not supported: write x\n  PIVOT t ON a;\n  ^"
        );
        let message = "SQL: Expected: an expression, found: EOF";
        let shown = format!("{message}\n  SELECT (;\n{}^", " ".repeat(10));
        assert_eq!(describe_error("", "SELECT (;", message), shown);
    }

    #[cfg(feature = "cloud")]
    #[test]
    fn credentials_are_not_shown() {
        let message = "SQL: Expected: ), found: oops at Line: 2, Column: 7";
        let text = "COPY t TO 's3://b/x' OPTIONS ('aws.secret_access_key'\n'abc' oops)";
        assert_eq!(describe_error("", text, message), "line 2: SQL: Expected: ), found: ..");
        let text = "OPTIONS ('aws.secret_access_key' 'x');\n'abc' oops";
        let said = describe_error("", text, message);
        assert!(said.contains("'abc' oops\n"), "{said}");
    }

    #[test]
    fn names_in_messages_are_found() {
        let caret = |text: &str, message: &str| {
            let said = describe_error("", text, message);
            said.lines().last().and_then(|l| l.find('^')).map(|at| at - 2)
        };
        let no_field = "Schema error: No field named foo. Did you mean 'fo'?";
        assert_eq!(caret("SELECT 'foo', foo FROM t", no_field), Some(14));
        assert_eq!(caret("SELECT FOO(1), b.foo FROM t", "No field named b.foo."), Some(17));
        assert_eq!(caret("SELECT \"x.y\" FROM t", "No field named \"x.y\"."), Some(7));
        let table = "Error during planning: table 'datafusion.public.x.nrt' not found";
        assert_eq!(caret("SELECT 1 FROM 'x.nrt'", table), Some(14));
        let function = "Error during planning: Invalid function 'mode'.";
        assert_eq!(caret("SELECT mode, Mode(x) FROM t", function), Some(13));
        let arguments = "Error during planning: ragged_sum takes 1 to 2 arguments, but found 4";
        assert_eq!(caret("SELECT ragged_sum(1, 2, 3, 4)", arguments), Some(7));
        let arguments = "date_diff takes 3 arguments, a part and two times, but found 2";
        assert_eq!(caret("SELECT datediff(a, b)", arguments), Some(7));
        assert_eq!(caret("SELECT datediff(a, b), date_diff(a)", arguments), Some(23));
        assert_eq!(caret("SELECT x", "the file is damaged"), None);
        assert!(describe_error("-c", "SELECT x", "the file is damaged").ends_with("in: SELECT x"));
    }

    #[test]
    fn operators_and_literals_in_messages_are_found_if_they_are_there_once() {
        let caret = |text: &str, message: &str| {
            let said = describe_error("", text, message);
            said.lines().last().and_then(|l| l.find('^')).map(|at| at - 2)
        };
        let sum =
            "Cannot coerce arithmetic expression Timestamp(µs, \"UTC\") + Int64 to valid types";
        assert_eq!(caret("SELECT t + 5, '+' FROM t", sum), Some(9));
        assert_eq!(caret("SELECT t + 5, a + b FROM t", sum), None);
        let sum =
            "ragged_add (+): operator + with operands of the types Int64 and Utf8: expected ..";
        assert_eq!(caret("SELECT [1] + 'x'", sum), Some(11));
        let cast = "Cannot cast string 'abc' to value of Int32 type";
        assert_eq!(caret("SELECT abc, CAST('abc' AS INT)", cast), Some(17));
        let sign = "Unary operator 'NOT' requires a boolean expression, got Int64";
        assert_eq!(caret("SELECT NOT 5", sign), Some(7));
        let interval = "Invalid input syntax for type interval: \"1 foo\"";
        assert_eq!(caret("SELECT INTERVAL '1 foo'", interval), Some(16));
        let order = "Order by column out of bounds, specified: 3, max: 1";
        assert_eq!(caret("SELECT 1 ORDER BY 3", order), Some(18));
        let predicate = "Cannot create filter with non-boolean predicate 'x' returning Int64";
        assert_eq!(caret("SELECT x FROM t where x", predicate), Some(16));
        assert_eq!(caret("SELECT 1 / 0", "division by zero; write nullif(x, 0)"), Some(9));
        let mask = "WHERE, HAVING and QUALIFY need one boolean per row, but x > 1 is a list";
        assert_eq!(caret("SELECT x FROM t WHERE x > 1", mask), Some(16));
        assert_eq!(caret("SELECT x FROM t WHERE a HAVING x > 1", mask), None);
        let any = "list_contains and = ANY search for one element of List(Utf8), but ..";
        assert_eq!(caret("SELECT x = ANY(['X'])", any), Some(11));
        assert_eq!(caret("SELECT x || 2", "|| appends an element to a list, but .."), Some(9));
        let filter = "the condition of list_filter is one boolean per element, but ..; use f_x";
        assert_eq!(caret("SELECT f_x(list_filter(a, v -> v))", filter), Some(11));
        let call = "the call ragged_window(..) FILTER (WHERE ..) is not supported: FILTER ..";
        assert_eq!(caret("SELECT ragged_window(x) FILTER (WHERE a)", call), Some(7));
        let noon = "Error parsing timestamp from 'noon': timestamp must contain ..";
        assert_eq!(caret("SELECT TIMESTAMP 'noon'", noon), Some(17));
        let file = "nosuch.csv: the file does not exist, or no file matches the pattern";
        assert_eq!(caret("FROM read_csv('nosuch.csv')", file), Some(14));
        assert_eq!(caret("FROM 'x' -- a", "cannot read 'x': no format .."), Some(5));
        let sample = "USING SAMPLE is not supported: use WHERE random() < 0.01 ..";
        assert_eq!(caret("FROM t JOIN u USING (a) USING SAMPLE 9", sample), Some(24));
        let bits = "bitwise operators take scalar integers, but an operand is a list ..";
        assert_eq!(caret("SELECT to_days([1, 2])", bits), Some(7));
        assert_eq!(caret("SELECT to_days([1, 2]), 1 | 2", bits), None);
        let format = "the format XYZ is unknown; COPY writes ARROW, CSV, PARQUET";
        assert_eq!(caret("COPY t TO 'z' (FORMAT xyz)", format), Some(22));
        assert_eq!(caret("COPY t TO 'z' STORED AS xyz", format), Some(24));
        let month = "Month value '13' is out of range";
        assert_eq!(caret("SELECT make_timestamp(2024, 13, 1)", month), Some(28));
    }

    #[test]
    fn long_lines_are_cut_around_the_caret() {
        let text = format!("SELECT {}, foo, {} FROM t", "a, ".repeat(60), "b, ".repeat(60));
        let said = describe_error("", &text, "No field named foo.");
        let lines: Vec<&str> = said.lines().collect();
        assert!(lines[1].starts_with("  …") && lines[1].ends_with('…'), "{said}");
        assert!(lines[1].width() <= 80, "{said}");
        let at = lines[2].find('^').unwrap();
        assert_eq!(lines[1].chars().skip(at).take(3).collect::<String>(), "foo");
        // A line that fits is shown whole, wherever the caret is.
        let text = format!("SELECT {}, foo FROM t", "a".repeat(50));
        let said = describe_error("", &text, "No field named foo.");
        assert!(said.contains(&format!("\n  {text}\n")), "{said}");
        let parts = cut_around(&"a".repeat(30), "bc", 20);
        assert_eq!(parts, (format!("…{}", "a".repeat(17)), "bc".to_owned()));
        let parts = cut_around(&"a".repeat(30), &"b".repeat(30), 20);
        assert_eq!(parts, (format!("…{}", "a".repeat(9)), format!("{}…", "b".repeat(9))));
        assert_eq!((choose_width(None), choose_width(Some(200))), (DEFAULT_WIDTH, 196));
        let said = describe_error("", "SELECT '血圧', foo", "No field named foo.");
        assert!(said.ends_with(&format!("\n{}^", " ".repeat(17))), "{said}");
    }

    #[test]
    fn multi_line_input_of_the_shell_has_line_numbers() {
        let said = describe_error("", "SELECT 1,\n         foo;", "No field named foo.");
        assert_eq!(said, "line 2: No field named foo.\n  foo;\n  ^");
    }
}
