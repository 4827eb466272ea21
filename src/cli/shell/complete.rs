//! Completes words in the shell, and detects complete statements.

use std::collections::BTreeSet;

use datafusion::common::config::Dialect;
use datafusion::sql::sqlparser::keywords::{
    ALL_KEYWORDS, ALL_KEYWORDS_INDEX, RESERVED_FOR_COLUMN_ALIAS, RESERVED_FOR_TABLE_ALIAS,
};
use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::hint::HistoryHinter;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Helper, Highlighter, Hinter};

use crate::cli::run::Runner;
use crate::cli::script;

/// Keywords that the shell completes in addition to the keywords that SQL reserves.
const MORE_KEYWORDS: &[&str] = &[
    "ASC", "BETWEEN", "BY", "CASE", "COPY", "CREATE", "DESC", "DESCRIBE", "DISTINCT", "DROP",
    "ELSE", "EXISTS", "EXPLAIN", "EXTERNAL", "FALSE", "INSERT", "INTO", "LOCATION", "NOT", "NULL",
    "NULLS", "OVER", "REPLACE", "SET", "SHOW", "STORED", "TABLE", "TABLES", "THEN", "TRUE",
    "VALUES", "VIEW",
];

#[derive(Debug, Default)]
pub(super) struct SessionNames {
    pub(super) tables: Vec<String>,
    columns: BTreeSet<String>,
    functions: BTreeSet<String>,
}

impl SessionNames {
    pub(super) async fn read(runner: &Runner) -> Self {
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
                    names.tables.push(match default {
                        true => table_name,
                        false => format!("{catalog_name}.{schema_name}.{table_name}"),
                    });
                }
            }
        }
        names.tables.sort();
        names.functions.extend(state.scalar_functions().keys().cloned());
        names.functions.extend(state.higher_order_functions().keys().cloned());
        names.functions.extend(state.aggregate_functions().keys().cloned());
        names.functions.extend(state.window_functions().keys().cloned());
        names.functions.extend(state.table_functions().keys().cloned());
        names
    }
}

#[derive(Helper, Highlighter, Hinter)]
pub(super) struct ShellHelper {
    dialect: Dialect,
    pub(super) names: SessionNames,
    files: FilenameCompleter,
    #[rustyline(Hinter)]
    hinter: HistoryHinter,
}

impl ShellHelper {
    pub(super) fn new(dialect: Dialect, names: SessionNames) -> Self {
        let files = FilenameCompleter::new();
        Self { dialect, names, files, hinter: HistoryHinter::new() }
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
        // Completes file names inside quotes and after .read.
        let quoted = before.matches('\'').count() % 2 == 1;
        if quoted {
            let start = before.rfind('\'').map_or(0, |i| i + 1);
            let (at, found) = self.files.complete_path(&before[start..], pos - start)?;
            return Ok((start + at, found));
        }
        if before.trim_start().starts_with(".read ") {
            return self.files.complete_path(line, pos);
        }
        Ok(complete_word(&self.names, before))
    }
}

/// Returns the start of the word before the cursor and the completions of the word.
fn complete_word(names: &SessionNames, before: &str) -> (usize, Vec<Pair>) {
    let start = before
        .rfind(|c: char| !(c.is_alphanumeric() || c == '_'))
        .map_or(0, |i| i + before[i..].chars().next().map_or(0, char::len_utf8));
    let word = &before[start..];
    if word.is_empty() {
        return (start, Vec::new());
    }
    if before.trim_start() == format!(".{word}") {
        let commands = super::COMMANDS.iter().filter_map(|(c, _)| c[1..].split(' ').next());
        return (start, to_pairs(commands.filter(|c| c.starts_with(word))));
    }
    let lower = word.to_lowercase();
    let known = names.tables.iter().chain(&names.columns);
    let mut found = to_pairs(known.filter(|n| n.to_lowercase().starts_with(&lower)));
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

fn to_pairs(words: impl IntoIterator<Item = impl ToString>) -> Vec<Pair> {
    words.into_iter().map(|w| Pair { display: w.to_string(), replacement: w.to_string() }).collect()
}

/// Lists the keywords to complete: the keywords that cannot be aliases because they begin clauses, and
/// further common ones.
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

/// Whether Enter runs the text: a dot command, an empty line, or statements that end with `;`.
fn is_complete(text: &str, dialect: &Dialect) -> bool {
    let start = text.trim_start();
    // Text with an unclosed quote or comment is not complete. It continues on the next line.
    start.starts_with('.') || script::split_statements(text, dialect).is_ok_and(|s| s.complete)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_end_with_a_semicolon() {
        for complete in ["", "  ", ".help", "SELECT 1;", "SELECT 1; SELECT 2;\n", "-- nothing"] {
            assert!(is_complete(complete, &Dialect::DuckDB), "{complete}");
        }
        for open in ["SELECT 1", "SELECT ';", "SELECT 1; SELECT", "SELECT 1 /* ;"] {
            assert!(!is_complete(open, &Dialect::DuckDB), "{open}");
        }
    }

    fn replacements(before: &str) -> (usize, Vec<String>) {
        let names = SessionNames {
            tables: vec!["patients".into()],
            columns: ["Code".to_owned(), "parent".to_owned()].into(),
            functions: ["ragged_sum".to_owned(), "paste".to_owned()].into(),
        };
        let (start, found) = complete_word(&names, before);
        (start, found.into_iter().map(|p| p.replacement).collect())
    }

    #[test]
    fn words_are_completed_from_all_that_is_known() {
        let (start, found) = replacements("SELECT pa");
        assert_eq!(start, 7);
        assert!(found.starts_with(&["patients".into(), "parent".into(), "paste(".into()]));
        assert_eq!(replacements("SELECT co").1[0], "Code");
        assert!(replacements("sel").1.contains(&"select".to_owned()));
        assert!(replacements("SEL").1.contains(&"SELECT".to_owned()));
        assert_eq!(replacements(".he"), (1, vec!["help".into()]));
        assert_eq!(replacements(".help ragg"), (6, vec!["ragged_sum".into()]));
        assert_eq!(replacements("SELECT "), (7, vec![]));
    }
}
