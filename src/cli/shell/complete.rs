//! Completes words in the shell, and detects complete statements.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use clap::ValueEnum;
use datafusion::common::config::Dialect;
use datafusion::prelude::SessionContext;
use datafusion::sql::sqlparser::keywords::{
    ALL_KEYWORDS, ALL_KEYWORDS_INDEX, Keyword, RESERVED_FOR_COLUMN_ALIAS, RESERVED_FOR_TABLE_ALIAS,
};
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::HistoryHinter;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{
    Cmd, ConditionalEventHandler, Context, Event, EventContext, Helper, Hinter, RepeatCount,
};
use serrate_core::internal::lock_mutex;

use crate::access;

use super::help;
use super::prompts::{COMMANDS, CONTINUATION, INDENT};
use crate::cli::arguments::OutputFormat;
use crate::cli::script;
use crate::cli::statement_runner::StatementRunner;
use crate::sql::{find_parser_dialect, list_shorthand_names, quote_name};

/// Keywords that the shell completes, but that SQL does not reserve.
const MORE_KEYWORDS: &[&str] = &[
    "ASC", "BETWEEN", "BY", "CASE", "COPY", "CREATE", "DESC", "DESCRIBE", "DISTINCT", "DROP",
    "ELSE", "EXISTS", "EXPLAIN", "EXTERNAL", "FALSE", "INSERT", "INTO", "LOCATION", "NOT", "NULL",
    "NULLS", "OVER", "REPLACE", "SET", "SHOW", "STORED", "TABLE", "TABLES", "THEN", "TRUE",
    "VALUES", "VIEW",
];

#[derive(Debug, Default)]
pub(super) struct SessionNames {
    /// Maps the name of each table, as `.tables` shows it, to the name that a statement must
    /// contain, which may have quotes.
    pub(super) tables: BTreeMap<String, String>,
    columns: BTreeSet<String>,
    functions: BTreeSet<String>,
}

impl SessionNames {
    pub(super) async fn read(runner: &StatementRunner) -> Self {
        let context = runner.context();
        let state = context.state();
        let defaults = &state.config().options().catalog;
        let mut names = Self::default();
        for catalog_name in context.catalog_names() {
            let Some(catalog) = context.catalog(&catalog_name) else { continue };
            for schema_name in catalog.schema_names() {
                let Some(schema) = catalog.schema(&schema_name) else { continue };
                let default = catalog_name == defaults.default_catalog
                    && schema_name == defaults.default_schema;
                if schema_name == "information_schema" {
                    continue;
                }
                for table_name in schema.table_names() {
                    if let Ok(Some(table)) = schema.table(&table_name).await {
                        let columns = table.schema();
                        names.columns.extend(columns.fields().iter().map(|f| f.name().clone()));
                    }
                    let quoted = quote_if_needed(&table_name);
                    match default {
                        true => names.tables.insert(table_name, quoted),
                        false => names.tables.insert(
                            format!("{catalog_name}.{schema_name}.{table_name}"),
                            format!(
                                "{}.{}.{quoted}",
                                quote_if_needed(&catalog_name),
                                quote_if_needed(&schema_name)
                            ),
                        ),
                    };
                }
            }
        }
        names.functions.extend(state.scalar_functions().keys().cloned());
        names.functions.extend(state.higher_order_functions().keys().cloned());
        names.functions.extend(state.aggregate_functions().keys().cloned());
        names.functions.extend(state.window_functions().keys().cloned());
        names.functions.extend(state.table_functions().keys().cloned());
        names.functions.extend(help::list_table_function_names().map(str::to_owned));
        names.functions.extend(list_shorthand_names().map(str::to_owned));
        names
    }
}

#[derive(Helper, Hinter)]
pub(super) struct ShellHelper {
    dialect: Dialect,
    names: SessionNames,
    sources: SourceColumns,
    /// Completes file names in any folder. `None` if `--root` restricts the process to one folder.
    files: Option<FilenameCompleter>,
    #[rustyline(Hinter)]
    hinter: HistoryHinter,
}

impl ShellHelper {
    pub(super) fn new(runner: &StatementRunner, names: SessionNames) -> Self {
        Self {
            dialect: runner.dialect(),
            names,
            sources: SourceColumns::new(runner.context().clone()),
            files: (!access::has_root()).then(FilenameCompleter::new),
            hinter: HistoryHinter::new(),
        }
    }

    fn complete_path(&self, line: &str, pos: usize) -> rustyline::Result<(usize, Vec<Pair>)> {
        self.files.as_ref().map_or(Ok((pos, Vec::new())), |files| files.complete_path(line, pos))
    }

    /// Replaces the names that the shell completes. The shell calls this after each statement,
    /// because the statement may have changed tables and files.
    pub(super) fn update_names(&mut self, names: SessionNames) {
        self.names = names;
        self.sources.clear();
    }
}

/// Maximum time that the shell waits for the columns of a file when it completes a word.
const MAX_WAIT: Duration = Duration::from_millis(1500);

/// Finds and remembers the columns of sources. A source is what FROM reads: a file, such as
/// `'x.nrt'`, or a table function, such as `meds('DIR')`.
struct SourceColumns {
    context: SessionContext,
    runtime: Option<tokio::runtime::Handle>,
    known: Arc<Mutex<HashMap<String, Vec<String>>>>,
}

impl SourceColumns {
    fn new(context: SessionContext) -> Self {
        let runtime = tokio::runtime::Handle::try_current().ok();
        Self { context, runtime, known: Arc::default() }
    }

    fn clear(&self) {
        lock_mutex(&self.known).clear();
    }

    /// Returns the names of the columns of `source`. The list is empty if the source cannot be
    /// read, or not within [`MAX_WAIT`].
    fn columns(&self, source: &str) -> Vec<String> {
        let look_up = || lock_mutex(&self.known).get(source).cloned();
        if let Some(columns) = look_up() {
            return columns;
        }
        let Some(runtime) = &self.runtime else { return Vec::new() };
        let (context, known) = (self.context.clone(), Arc::clone(&self.known));
        let (source, (done, wait)) = (source.to_owned(), mpsc::channel());
        runtime.spawn(async move {
            let frame = crate::sql::sql(&context, &format!("SELECT * FROM {source}")).await;
            let columns = frame.map(|frame| {
                frame.schema().fields().iter().map(|f| f.name().clone()).collect::<Vec<_>>()
            });
            let columns = columns.unwrap_or_default();
            lock_mutex(&known).insert(source, columns.clone());
            let _ = done.send(columns);
        });
        wait.recv_timeout(MAX_WAIT).unwrap_or_default()
    }
}

/// Returns the sources in FROM clauses as they are written: files, such as `'x.nrt'`, and calls of
/// table functions whose arguments are strings, such as `meds('DIR')`.
fn find_sources(text: &str, dialect: Dialect) -> Vec<String> {
    let Some(dialect) = find_parser_dialect(dialect) else { return Vec::new() };
    let Ok(tokens) = Tokenizer::new(dialect.as_ref(), text).tokenize() else { return Vec::new() };
    let tokens: Vec<Token> =
        tokens.into_iter().filter(|t| !matches!(t, Token::Whitespace(_))).collect();
    let mut found: Vec<String> = Vec::new();
    let mut in_from = false;
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let rest = tokens.get(at..).unwrap_or_default();
        if in_from && let Some(length) = count_call_tokens(rest) {
            found.push(rest.iter().take(length).map(Token::to_string).collect());
            at += length;
            continue;
        }
        let before = at.checked_sub(1).and_then(|before| tokens.get(before));
        let begins = matches!(before, Some(Token::Comma | Token::Word(_)));
        match token {
            Token::SingleQuotedString(_) if in_from && begins => found.push(token.to_string()),
            Token::Word(word) => match word.keyword {
                Keyword::FROM | Keyword::JOIN => in_from = true,
                Keyword::SELECT
                | Keyword::WHERE
                | Keyword::ON
                | Keyword::USING
                | Keyword::GROUP
                | Keyword::HAVING
                | Keyword::QUALIFY
                | Keyword::ORDER
                | Keyword::LIMIT => in_from = false,
                _ => {}
            },
            _ => {}
        }
        at += 1;
    }
    found
}

/// Returns the number of tokens of the call with which `tokens` begin, if all its arguments are
/// strings.
fn count_call_tokens(tokens: &[Token]) -> Option<usize> {
    let [Token::Word(_), Token::LParen, arguments @ ..] = tokens else { return None };
    for (at, argument) in arguments.chunks(2).enumerate() {
        match argument {
            [Token::SingleQuotedString(_), Token::Comma] => {}
            [Token::SingleQuotedString(_), Token::RParen] => return Some(2 + 2 * (at + 1)),
            _ => return None,
        }
    }
    None
}

impl Highlighter for ShellHelper {
    /// Shows the prompt [`CONTINUATION`] in place of the indentation of each continuation line.
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        show_prompts(line)
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        show_prompts(hint)
    }
}

fn show_prompts(text: &str) -> Cow<'_, str> {
    match text.contains('\n') {
        true => text.replace(&format!("\n{INDENT}"), &format!("\n{CONTINUATION}")).into(),
        false => text.into(),
    }
}

/// Handles Enter. If the text is not a complete statement, Enter begins a new line, which is
/// indented by [`INDENT`].
pub(super) struct EnterKey {
    pub(super) dialect: Dialect,
}

impl ConditionalEventHandler for EnterKey {
    fn handle(
        &self,
        _: &Event,
        _: RepeatCount,
        _: bool,
        context: &EventContext<'_>,
    ) -> Option<Cmd> {
        let text = context.line();
        let open = context.pos() == text.len()
            && !is_complete(text, &self.dialect)
            // A new line within quotes is not indented: indentation would be part of the string.
            && script::split_statements(text, &self.dialect).is_ok();
        open.then(|| Cmd::Insert(1, format!("\n{INDENT}")))
    }
}

impl Completer for ShellHelper {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let before = &line[..pos];
        // Completes file names inside single quotes, and after `.read` and `.output`.
        if let Some((quote, '\'')) = find_open_quote(before) {
            let start = quote + 1;
            let (at, found) = self.complete_path(&before[start..], pos - start)?;
            return Ok((start + at, found));
        }
        let command = before.trim_start();
        if command.starts_with(".read ") || command.starts_with(".output ") {
            return self.complete_path(line, pos);
        }
        if let Some(word) = command.strip_prefix(".mode ") {
            let modes = list_modes().filter(|mode| mode.starts_with(word));
            return Ok((pos - word.len(), to_pairs(modes)));
        }
        let sources = find_sources(line, self.dialect);
        let in_scope: BTreeSet<String> =
            sources.iter().flat_map(|source| self.sources.columns(source)).collect();
        Ok(complete_word(&self.names, &in_scope, before))
    }
}

/// Returns the names of the formats that `.mode` accepts, without their aliases.
pub(super) fn list_modes() -> impl Iterator<Item = String> {
    let formats = OutputFormat::value_variants().iter();
    formats.filter_map(|format| Some(format.to_possible_value()?.get_name().to_owned()))
}

/// Returns the position where the word before the cursor starts, and the completions of this word.
/// The columns of the sources in the statement (`in_scope`) come first.
fn complete_word(
    names: &SessionNames,
    in_scope: &BTreeSet<String>,
    before: &str,
) -> (usize, Vec<Pair>) {
    if let Some((start, '"')) = find_open_quote(before) {
        let word = before[start + 1..].replace("\"\"", "\"");
        return (start, complete_name(names, in_scope, &word, true));
    }
    let start = before
        .rfind(|c: char| !(c.is_alphanumeric() || c == '_'))
        .map_or(0, |i| i + before[i..].chars().next().map_or(0, char::len_utf8));
    let word = &before[start..];
    if word.is_empty() {
        return (start, Vec::new());
    }
    if before.trim_start() == format!(".{word}") {
        let commands = COMMANDS.iter().filter(|(c, _)| c.starts_with('.'));
        let commands = commands.filter_map(|(c, _)| c[1..].split(' ').next());
        return (start, to_pairs(commands.filter(|c| c.starts_with(word))));
    }
    let lower = word.to_lowercase();
    let mut found = complete_name(names, in_scope, word, false);
    found.extend(names.functions.iter().filter(|f| f.starts_with(&lower)).map(|f| Pair {
        display: format!("{f}()"),
        replacement: if before.trim_start().starts_with(".help") {
            f.clone()
        } else {
            format!("{f}(")
        },
    }));
    let upper = word.to_uppercase();
    let same_case = |k: &str| if *word == lower { k.to_lowercase() } else { k.to_owned() };
    let keywords = list_keywords().into_iter().filter(|k| k.starts_with(&upper)).map(same_case);
    found.extend(to_pairs(keywords));
    (start, found)
}

/// Returns the names that begin with `word`: columns in `in_scope`, then tables, then other
/// columns. Each has the text to insert: the name, in quotes if SQL requires them. If `word`
/// follows an open double quote, `in_quotes` is true, and all names are in quotes.
fn complete_name(
    names: &SessionNames,
    in_scope: &BTreeSet<String>,
    word: &str,
    in_quotes: bool,
) -> Vec<Pair> {
    let lower = word.to_lowercase();
    let write = |name: &String| match in_quotes {
        true => quote_name(name),
        false => quote_if_needed(name),
    };
    let others = names.columns.iter().filter(|column| !in_scope.contains(*column));
    // After an open quote, omits qualified names such as `"s"."t"`, because their quotes close
    // within the name.
    let tables = names
        .tables
        .iter()
        .filter(|(name, quoted)| !in_quotes || quote_if_needed(name) == **quoted);
    let tables = tables.map(|(name, quoted)| match in_quotes {
        true => (name, write(name)),
        false => (name, quoted.clone()),
    });
    in_scope
        .iter()
        .map(|name| (name, write(name)))
        .chain(tables)
        .chain(others.map(|name| (name, write(name))))
        .filter(|(name, _)| name.to_lowercase().starts_with(&lower))
        .map(|(name, replacement)| Pair { display: name.clone(), replacement })
        .collect()
}

/// Returns a name as SQL must write it: in quotes if it has characters other than letters, digits
/// and `_`, begins with a digit, or is a keyword that cannot be a name.
fn quote_if_needed(name: &str) -> String {
    let begins_plain = name.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_');
    let is_plain = begins_plain && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    match is_plain && !is_reserved(name) {
        true => name.to_owned(),
        false => quote_name(name),
    }
}

fn is_reserved(name: &str) -> bool {
    let name = name.to_uppercase();
    let at = ALL_KEYWORDS.iter().position(|keyword| *keyword == name);
    let keyword = at.and_then(|at| ALL_KEYWORDS_INDEX.get(at));
    keyword.is_some_and(|keyword| {
        RESERVED_FOR_COLUMN_ALIAS.contains(keyword) || RESERVED_FOR_TABLE_ALIAS.contains(keyword)
    })
}

/// Returns the position and the character of the quote that is open at the end of `text`, or `None`
/// if no quote is open.
fn find_open_quote(text: &str) -> Option<(usize, char)> {
    let mut open: Option<(usize, char)> = None;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match (open, c) {
            // Two quotes within quotes stand for one quote character, and do not close the quote.
            (Some((_, quote)), _)
                if c == quote && chars.next_if(|(_, next)| *next == quote).is_none() =>
            {
                open = None;
            }
            (None, '\'' | '"') => open = Some((at, c)),
            _ => {}
        }
    }
    open
}

fn to_pairs(words: impl IntoIterator<Item = impl ToString>) -> Vec<Pair> {
    words.into_iter().map(|w| Pair { display: w.to_string(), replacement: w.to_string() }).collect()
}

/// Returns the keywords that the shell completes: [`MORE_KEYWORDS`], and the keywords that cannot
/// be aliases, such as FROM and WHERE, because most of them begin clauses.
fn list_keywords() -> BTreeSet<&'static str> {
    let reserved = RESERVED_FOR_COLUMN_ALIAS.iter().chain(RESERVED_FOR_TABLE_ALIAS);
    reserved
        .filter_map(|k| ALL_KEYWORDS_INDEX.iter().position(|i| i == k))
        .map(|i| ALL_KEYWORDS[i])
        .chain(MORE_KEYWORDS.iter().copied())
        .collect()
}

impl Validator for ShellHelper {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let text = context.input();
        Ok(match is_complete(text, &self.dialect) {
            true => ValidationResult::Valid(None),
            false => ValidationResult::Incomplete,
        })
    }
}

/// Commands that need no dot, as in other shells, because no statement begins with these words.
const DOTLESS_COMMANDS: [&str; 3] = ["exit", "help", "quit"];

/// Returns the command of the shell in `text` without its dot or backslash, or `None` if `text` has
/// statements.
pub(super) fn find_command(text: &str) -> Option<&str> {
    let text = text.trim();
    let word = text.trim_end_matches(';').trim_end();
    text.strip_prefix(['.', '\\']).or_else(|| DOTLESS_COMMANDS.contains(&word).then_some(word))
}

/// Whether Enter runs the text: an empty line, a command of the shell, or statements that end with
/// `;`.
pub(super) fn is_complete(text: &str, dialect: &Dialect) -> bool {
    // `split_statements` fails for an open quote or comment: the text continues on the next line.
    find_command(text).is_some()
        || script::split_statements(text, dialect).is_ok_and(|s| s.complete)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_end_with_a_semicolon() {
        for complete in
            ["", "  ", ".help", "\\x", "SELECT 1;", "SELECT 1; SELECT 2;\n", "-- nothing"]
        {
            assert!(is_complete(complete, &Dialect::DuckDB), "{complete}");
        }
        for open in ["SELECT 1", "SELECT ';", "SELECT 1; SELECT", "SELECT 1 /* ;"] {
            assert!(!is_complete(open, &Dialect::DuckDB), "{open}");
        }
    }

    #[test]
    fn some_commands_need_no_dot() {
        for (text, command) in [
            (" .tables\n", Some("tables")),
            ("\\x", Some("x")),
            ("exit", Some("exit")),
            ("quit;\n", Some("quit")),
            ("help", Some("help")),
            ("tables", None),
            ("help me", None),
            ("SELECT 1\nhelp", None),
        ] {
            assert_eq!(find_command(text), command, "{text}");
        }
    }

    fn replacements(before: &str) -> (usize, Vec<String>) {
        let names = SessionNames {
            tables: ["patients", "my-table"].map(|n| (n.to_owned(), quote_if_needed(n))).into(),
            columns: ["Code", "parent", "code/n_occurrences", "order"].map(str::to_owned).into(),
            functions: ["ragged_sum".to_owned(), "paste".to_owned()].into(),
        };
        let in_scope = ["parent_code".to_owned()].into();
        let (start, found) = complete_word(&names, &in_scope, before);
        (start, found.into_iter().map(|p| p.replacement).collect())
    }

    #[test]
    fn words_are_completed_from_all_that_is_known() {
        let (start, found) = replacements("SELECT pa");
        assert_eq!(start, 7);
        assert!(
            found.starts_with(&["parent_code", "patients", "parent", "paste("].map(String::from))
        );
        assert_eq!(replacements("SELECT co").1[0], "Code");
        assert!(replacements("sel").1.contains(&"select".to_owned()));
        assert!(replacements("SEL").1.contains(&"SELECT".to_owned()));
        assert_eq!(replacements(".he"), (1, vec!["help".into()]));
        assert_eq!(replacements(".help ragg"), (6, vec!["ragged_sum".into()]));
        assert_eq!(replacements("SELECT "), (7, vec![]));
        assert_eq!(replacements("SELECT 'it''s \"', PA").1[0], "parent_code");
    }

    #[test]
    fn names_that_require_quotes_are_completed_in_quotes() {
        let name = "\"code/n_occurrences\"".to_owned();
        assert_eq!(replacements("SELECT code"), (7, vec!["Code".into(), name.clone()]));
        assert_eq!(replacements("SELECT \"code/n_o"), (7, vec![name]));
        assert_eq!(replacements("SELECT \"pas"), (7, vec![]));
        assert_eq!(replacements("SELECT \"pati"), (7, vec!["\"patients\"".into()]));
        assert_eq!(replacements("FROM my").1[0], "\"my-table\"");
        assert!(replacements("SELECT ord").1.contains(&"\"order\"".to_owned()));
        assert_eq!(quote_if_needed("2nd"), "\"2nd\"");
        assert_eq!(quote_if_needed("a\"b"), "\"a\"\"b\"");
        assert_eq!(quote_if_needed("größe_2"), "größe_2");
        assert_eq!(find_open_quote("a 'b''c"), Some((2, '\'')));
        assert_eq!(find_open_quote("\"a\"\"b\" 'c\"'"), None);
    }

    #[test]
    fn sources_stand_after_from() {
        let text =
            "SELECT 'a', f('b'), x FROM 'c.nrt' AS c JOIN meds('d'), read_csv('e') WHERE s = 'f'";
        assert_eq!(find_sources(text, Dialect::DuckDB), ["'c.nrt'", "meds('d')", "read_csv('e')"]);
        let text = "FROM meds_asof('a', 'b') AS l, 'c.nrt', f('d', 2), g('e' SELECT h('i', 'j')";
        assert_eq!(find_sources(text, Dialect::DuckDB), ["meds_asof('a','b')", "'c.nrt'"]);
        assert_eq!(find_sources("SELECT 'open", Dialect::DuckDB), [""; 0]);
    }
}
