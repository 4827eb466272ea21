//! Prints help on functions, which it takes from their documentation.

use std::collections::BTreeMap;
use std::fmt::Write;

use datafusion::logical_expr::Documentation;
use datafusion::prelude::SessionContext;

use super::doc_text::{format_example, strip_markdown};
use crate::cli::command_failure::{Failure, Outcome};
use crate::functions::wrap_words;
use crate::sql::{
    find_counterpart, find_shorthand_documentation, find_similar_names, list_shorthand_forms,
    list_shorthand_names,
};

struct FunctionEntry {
    name: String,
    kind: &'static str,
    aliases: Vec<String>,
    documentation: Option<Documentation>,
}

fn collect_entries(context: &SessionContext) -> BTreeMap<String, Vec<FunctionEntry>> {
    let state = context.state();
    let mut entries: BTreeMap<String, Vec<FunctionEntry>> = BTreeMap::new();
    let mut add = |key: &str, kind, name: &str, aliases: &[String], doc: Option<&Documentation>| {
        entries.entry(key.to_owned()).or_default().push(FunctionEntry {
            name: name.to_owned(),
            kind,
            aliases: aliases.to_vec(),
            documentation: doc.cloned(),
        });
    };
    for (key, f) in state.scalar_functions() {
        add(key, "function", f.name(), f.aliases(), f.documentation());
    }
    for (key, f) in state.higher_order_functions() {
        add(key, "function", f.name(), f.aliases(), f.documentation());
    }
    for (key, f) in state.aggregate_functions() {
        add(key, "aggregate", f.name(), f.aliases(), f.documentation());
    }
    for (key, f) in state.window_functions() {
        add(key, "window function", f.name(), f.aliases(), f.documentation());
    }
    for key in state.table_functions().keys() {
        add(key, "table function", key, &[], None);
    }
    for (key, ..) in IN_FROM {
        if !entries.contains_key(key) {
            let (name, kind) = (key.to_owned(), "table function");
            let entry = FunctionEntry { name, kind, aliases: Vec::new(), documentation: None };
            entries.insert(key.to_owned(), vec![entry]);
        }
    }
    entries
}

const MEDS_PAGE: &str = r#"Result columns:
  subject_id            the subject
  time                  the time of each event
  time_delta_days       days since the event before
  code, code_id         per event, the codes of its measurements, and their
                        numbers in the vocabulary
  numeric_value         per event, the values of its measurements
  static_code, static_code_id, static_numeric_value
                        measurements without a time

  SELECT subject_id, ragged_lengths(code) FROM meds('tests/data/synthea-meds');
"#;

const MEDS_ASOF_PAGE: &str = r#"Result columns: those of the labels, and those of meds('DIR').

  SELECT subject_id, prediction_time, ragged_lengths(time)
  FROM meds_asof('tests/data/synthea-meds', 'tests/data/synthea-meds/labels');
"#;

const MEDS_FEATURES_PAGE: &str = r#"  codes, prefixes  the codes to aggregate; by default all of the vocabulary
  vocabulary       a codes.parquet, or a folder with it, that names the codes
  windows          '30d' (also s, m, h, w), 'all', 'static'
  aggregates       'count', 'value_count', 'sum', 'sum_sqd', 'mean', 'min',
                   'max', 'first', 'last', 'slope'
  closed           '(]' (default), '[)', '[]' or '()'
  form             'columns' (default), 'list', 'sparse' or 'names'

Result columns: row (the position of the label), those of the labels, and one
per feature, named code/window/aggregate.

  SELECT row, boolean_value, "LAB//*/90d/mean"
  FROM meds_features('tests/data/synthea-meds',
                     'tests/data/synthea-meds/labels',
                     prefixes => ['LAB//'], windows => ['90d'],
                     aggregates => ['mean']);
"#;

const MEDS_COHORT_PAGE: &str = r#"Result columns:
  subject_id, trigger   the subject, and the time of the trigger
  index_timestamp       the prediction time, if a window has this key
  label                 the count of the label, if a window has this key
  "input.end_summary"   and others: a struct per end of a window, with its times
                        and the count of each predicate

  SELECT subject_id, trigger, label
  FROM meds_cohort('tests/data/synthea-meds',
                   'tests/data/cohorts/emergency.yaml');
"#;

const RAGGED_NEST_PAGE: &str = r#"Result columns: those of the query. The first key has one value per row, and
each further key and the other columns are lists.

  SELECT * FROM ragged_nest(
      (SELECT * FROM (VALUES (1, 10), (1, 20), (2, 30)) AS t(id, x)), 'id');
"#;

const SUMMARIZE_PAGE: &str = r#"The figures of lists describe their values; leaves is the number of these values
and max_shape the smallest shape that holds all rows.

  SUMMARIZE SELECT numeric_value FROM meds('tests/data/synthea-meds');
"#;

const READ_CSV_PAGE: &str = r#"  header             false if the first line has values (default: true)
  delim              the character between values (default: a comma)
  quote, escape      the characters around values and before quotes within them
  comment            the first character of lines to leave out
  nullstr            the text of NULL

  SELECT count(*) FROM read_csv('data/*.txt', delim => ';', header => false);
"#;

/// Name, syntax, description and help page of each table function, because DataFusion has no
/// documentation of table functions.
const IN_FROM: [(&str, &str, &str, &str); 16] = [
    (
        "meds",
        "meds('DIR')",
        "Health records in the MEDS layout: one row per subject, with the list of its events.",
        MEDS_PAGE,
    ),
    (
        "meds_asof",
        "meds_asof('DIR', 'labels/')",
        "Health records as of labels: one row per label, with the events up to its prediction time only.",
        MEDS_ASOF_PAGE,
    ),
    (
        "meds_features",
        "meds_features('DIR', 'labels/' [, codes => [..]] [, prefixes => [..]] [, vocabulary => 'DIR'] [, windows => [..]] [, aggregates => [..]] [, closed => '(]'] [, form => 'columns'])",
        "Features of labels for tabular models: one row per label, with each aggregate of the values of each code or prefix in each window before its prediction time.",
        MEDS_FEATURES_PAGE,
    ),
    (
        "meds_cohort",
        "meds_cohort('DIR', 'CONFIG.yaml' [, predicates => 'FILE.yaml'])",
        "A cohort by criteria in the language of ACES: one row per realization, with its label, its prediction time, and the ends and counts of its windows.",
        MEDS_COHORT_PAGE,
    ),
    ("vocab", "vocab('codes.parquet'), vocab('DIR')", "Codes and their tokens.", ""),
    (
        "ragged_nest",
        "ragged_nest(query, 'key', ..)",
        "Nests rows into lists: one row per value of the first key, one axis per further key. The query is given in parentheses, as a string, or as the name of a table or file.",
        RAGGED_NEST_PAGE,
    ),
    (
        "ragged_explode",
        "ragged_explode(query [, keep_empty => true] [, positions => true])",
        "Expands lists to rows: one row per innermost element, with the columns above repeated. The query is given in parentheses, as a string, or as the name of a table or file.",
        "",
    ),
    (
        "ragged_axes",
        "ragged_axes(query)",
        "One row per axis: its columns, its elements, its shortest, longest and mean list, and its empty lists.",
        "",
    ),
    (
        "summarize",
        "summarize(query), SUMMARIZE query",
        "One row per column: its type, minimum and maximum, numbers of distinct values and of NULL, and the shape of its lists.",
        SUMMARIZE_PAGE,
    ),
    (
        "read_csv",
        "read_csv('FILE' [, header => true] [, delim => ','] [, quote => '\"'] [, escape => '\"'] [, comment => '#'] [, nullstr => 'NA'])",
        "CSV files, whatever their names. The first argument is a file, a folder, a pattern such as 'data/*' or a list of these.",
        READ_CSV_PAGE,
    ),
    (
        "read_parquet",
        "read_parquet('FILE')",
        "Parquet files, whatever their names. The argument is a file, a folder, a pattern such as 'data/*' or a list of these.",
        "",
    ),
    (
        "read_json",
        "read_json('FILE')",
        "JSON files, whatever their names. The argument is a file, a folder, a pattern such as 'data/*' or a list of these.",
        "",
    ),
    (
        "read_ndjson",
        "read_ndjson('FILE')",
        "JSON files with a record per line, whatever their names. The argument is a file, a folder, a pattern such as 'data/*' or a list of these.",
        "",
    ),
    (
        "read_nrt",
        "read_nrt('FILE')",
        ".nrt files of nested_ragged_tensors, whatever their names. The argument is a file, a folder, a pattern such as 'data/*' or a list of these.",
        "",
    ),
    (
        "read_arrow",
        "read_arrow('FILE')",
        "Arrow IPC files, whatever their names. The argument is a file, a folder, a pattern such as 'data/*' or a list of these.",
        "",
    ),
    (
        "read_safetensors",
        "read_safetensors('FILE')",
        "safetensors files, whatever their names. The argument is a file, a folder, a pattern such as 'data/*' or a list of these.",
        "",
    ),
];

pub(super) fn list_table_function_names() -> impl Iterator<Item = &'static str> {
    IN_FROM.iter().map(|(name, ..)| *name)
}

pub(super) fn find_table_syntax(name: &str) -> Option<&'static str> {
    IN_FROM.iter().find(|(known, ..)| *known == name).map(|(_, syntax, ..)| *syntax)
}

/// Returns an example call of the short form `name` (a call that Serrate replaces by another
/// expression), and the expression that replaces this call. The arguments are `x`, `y`, .., which
/// stand for `$1`, `$2`, .. in `expansion`.
fn write_expansion(name: &str, expansion: &str) -> (String, String) {
    let numbers = (1..=6).take_while(|n| expansion.contains(&format!("${n}")));
    let (arguments, text) = numbers.fold((Vec::new(), expansion.to_owned()), |(names, text), n| {
        let name = ["x", "y", "z", "u", "v", "w"][n - 1];
        let names = names.into_iter().chain([name]).collect::<Vec<_>>();
        (names, text.replace(&format!("${n}"), name))
    });
    (format!("{name}({})", arguments.join(", ")), text)
}

pub(super) fn format_function(
    context: &SessionContext,
    name: &str,
    width: usize,
) -> Outcome<String> {
    let name = name.trim_end_matches("()").to_lowercase();
    let entries = collect_entries(context);
    if let Some((_, syntax, what, details)) = IN_FROM.iter().find(|(known, ..)| *known == name) {
        let (syntax, what) = (format!("{syntax}    (table function)"), wrap_words(what, width, 0));
        let mut page = format!("{}\n\n{what}\n", wrap_words(&syntax, width, 4));
        if !details.is_empty() {
            page.push_str(&format!("\n{details}"));
        }
        return Ok(page);
    }
    let documented = find_shorthand_documentation(&name);
    let forms = list_shorthand_forms(&name);
    if let Some(((text, _), _)) = forms.split_first() {
        return Ok(match documented {
            Some(documentation) => {
                let mut page = document_form(&name, "short form", documentation, width);
                for (text, condition) in &forms {
                    let (call, text) = write_expansion(&name, text);
                    let text = format!("{call} stands for {text}{condition}");
                    page.push_str(&format!("\n{}\n", wrap_words(&text, width, 4)));
                }
                page
            }
            None => {
                let (call, text) = write_expansion(&name, text);
                let text = wrap_words(&format!("Stands for {text}"), width, 4);
                format!("{call}    (short form)\n\n{text}\n")
            }
        });
    }
    if let Some(documentation) = documented {
        return Ok(document_form(&name, "function", documentation, width));
    }
    let Some(found) = entries.get(&name) else {
        if let Some(ours) = find_counterpart(&name, |known| entries.contains_key(known)) {
            return Err(Failure::from_message(format!(
                "there is no function {name:?}; write {ours}"
            )));
        }
        let near: Vec<&str> =
            entries.keys().filter(|k| k.contains(&name)).map(String::as_str).collect();
        let hint = match near.split_at_checked(12) {
            Some((first, more)) if !more.is_empty() => {
                let first = first.join(", ");
                format!(
                    "; similar are {first} and {} more; .functions lists all functions",
                    more.len()
                )
            }
            _ if near.is_empty() => {
                let nearest = find_similar_names(&name, entries.keys().map(String::as_str));
                match nearest.is_empty() {
                    true => "; .functions lists all functions".to_owned(),
                    false => format!("; did you mean {}?", nearest.join(" or ")),
                }
            }
            _ => format!("; similar are {}", near.join(", ")),
        };
        return Err(Failure::from_message(format!("there is no function {name:?}{hint}")));
    };
    let mut page = String::new();
    for entry in found {
        // Writing to a string cannot fail.
        let _ = entry.write_page(&mut page, width);
    }
    Ok(page)
}

/// Returns the help page of a function that DataFusion has not registered, for example a short
/// form: a call that Serrate replaces by another expression.
fn document_form(
    name: &str,
    kind: &'static str,
    documentation: Documentation,
    width: usize,
) -> String {
    let documentation = Some(documentation);
    let entry = FunctionEntry { name: name.to_owned(), kind, aliases: Vec::new(), documentation };
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _ = entry.write_page(&mut page, width);
    page
}

impl FunctionEntry {
    fn write_page(&self, page: &mut String, width: usize) -> std::fmt::Result {
        let Some(doc) = &self.documentation else {
            return self.write_short_page(page, width);
        };
        let title = format!("{}    ({})", doc.syntax_example, self.kind);
        writeln!(page, "{}\n", wrap_words(&title, width, 4))?;
        for line in strip_markdown(doc.description.trim()).lines() {
            writeln!(page, "{}", wrap_words(line.trim(), width, 0))?;
        }
        for syntax in doc.alternative_syntax.iter().flatten() {
            writeln!(page, "{}", wrap_words(&format!("also: {syntax}"), width, 4))?;
        }
        if let Some(arguments) = &doc.arguments {
            let names = arguments.iter().map(|(n, _)| n.len()).max().unwrap_or(0);
            writeln!(page)?;
            for (name, what) in arguments {
                let indent = names.saturating_add(4);
                // A description may contain a list, so its lines are not joined.
                let what = strip_markdown(what.trim());
                let mut lines = what.lines().map(str::trim);
                let first = format!("  {name:<names$}  {}", lines.next().unwrap_or(""));
                writeln!(page, "{}", wrap_words(&first, width, indent))?;
                for line in lines {
                    let line = format!("{:indent$}{line}", "");
                    let deeper =
                        if line.trim_start().starts_with("- ") { indent + 2 } else { indent };
                    writeln!(page, "{}", wrap_words(line.trim_end(), width, deeper))?;
                }
            }
        }
        if let Some(example) = &doc.sql_example {
            writeln!(page)?;
            for line in format_example(example, width.saturating_sub(2)) {
                let line = format!("  {line}");
                writeln!(page, "{}", wrap_statement(line.trim_end(), width))?;
            }
        }
        self.write_aliases(page, width)?;
        if let Some(related) = doc.related_udfs.as_ref().filter(|r| !r.is_empty()) {
            let line = format!("see also: {}", related.join(", "));
            writeln!(page, "\n{}", wrap_words(&line, width, 2))?;
        }
        Ok(())
    }

    /// Writes the page of a function that has no documentation.
    fn write_short_page(&self, page: &mut String, width: usize) -> std::fmt::Result {
        if self.kind == "table function" {
            return writeln!(page, "{} is a {}, too: FROM {}(..)", self.name, self.kind, self.name);
        }
        writeln!(page, "{}(..)    ({})", self.name, self.kind)?;
        self.write_aliases(page, width)
    }

    fn write_aliases(&self, page: &mut String, width: usize) -> std::fmt::Result {
        if self.aliases.is_empty() {
            return Ok(());
        }
        let line = format!("aliases: {}", self.aliases.join(", "));
        writeln!(page, "\n{}", wrap_words(&line, width, 2))
    }
}

/// Breaks a line of an example at spaces, but not within string literals. A comment after a
/// statement moves to its own line. Lines of tables, and lines with other comments, stay unchanged.
fn wrap_statement(line: &str, width: usize) -> String {
    let text = line.trim_start();
    if let Some((statement, comment)) = line.split_once(";   -- ")
        && line.chars().count() > width
        && !statement.contains("--")
    {
        let indent = " ".repeat(line.len() - text.len());
        let statement = wrap_statement(&format!("{statement};"), width);
        return format!("{statement}\n{indent}-- {comment}");
    }
    if text.starts_with(['|', '+', '│', '┌', '└', '╞', '├']) || text.contains("--") {
        return line.to_owned();
    }
    // Replaces the spaces within string literals by '\u{1}', so that `wrap_words` does not break
    // the line there. No example contains this character.
    let mut within = false;
    let guarded = line.chars().map(|c| {
        within ^= c == '\'';
        if within && c == ' ' { '\u{1}' } else { c }
    });
    let mut guarded: String = guarded.collect();
    for keyword in ["DATE", "TIME", "TIMESTAMP", "INTERVAL"] {
        guarded = guarded.replace(&format!("{keyword} '"), &format!("{keyword}\u{1}'"));
    }
    // Indents further lines of a SELECT by 7 more characters, to begin below its first column.
    let deeper = if text.starts_with("SELECT ") { 7 } else { 4 };
    let indent = line.len() - text.len() + deeper;
    wrap_words(&guarded, width, indent).replace('\u{1}', " ")
}

/// Returns a list of the functions whose names contain `text`, ignoring case. Each line has the
/// name, the first sentence of the description, and the aliases that contain `text`.
pub(super) fn list_functions(context: &SessionContext, text: &str, width: usize) -> String {
    let text = text.to_lowercase();
    let mut entries = collect_entries(context);
    for name in list_shorthand_names() {
        entries.entry(name.to_owned()).or_insert_with(|| {
            vec![FunctionEntry {
                name: name.to_owned(),
                kind: "short form",
                aliases: Vec::new(),
                documentation: find_shorthand_documentation(name),
            }]
        });
    }
    let matching: Vec<_> = entries.iter().filter(|(name, _)| name.contains(&text)).collect();
    // Whether the line of another function already lists `name` as an alias, so that `name` gets no
    // line of its own.
    let is_alias = |name: &str, found: &[FunctionEntry]| {
        let own = |e: &FunctionEntry| e.name == name || !e.aliases.iter().any(|a| a == name);
        let lists_it = |e: &FunctionEntry| e.aliases.iter().any(|a| a == name);
        let shown = |e: &FunctionEntry| {
            let primary = entries.get(&e.name);
            e.name.contains(&text) && primary.is_some_and(|found| found.iter().any(lists_it))
        };
        found.iter().all(|e| !own(e) && shown(e))
    };
    let shown: Vec<_> =
        matching.iter().copied().filter(|(name, found)| !is_alias(name, found)).collect();
    let names = shown.iter().map(|(name, _)| name.len()).max().unwrap_or(0).min(MAX_NAME_WIDTH);
    let mut page = String::new();
    for (name, found) in shown {
        let documented = found.iter().find_map(|e| e.documentation.as_ref());
        let in_from = IN_FROM.iter().find(|(known, ..)| known == name).map(|(_, _, what, _)| *what);
        let described = in_from.or(documented.map(|d| d.description.as_str()));
        let what = match (described, list_shorthand_forms(name).first()) {
            (Some(what), _) => find_first_sentence(&strip_markdown(what)).to_owned(),
            (None, Some((text, _))) => format!("Stands for {}", write_expansion(name, text).1),
            (None, None) => String::new(),
        };
        let mut line = format!("{name:<names$}  {what}");
        let aliases = matching.iter().map(|(key, _)| key.as_str()).filter(|key| *key != name);
        let aliases: Vec<&str> = aliases
            .filter(|key| {
                found.iter().any(|e| e.name == *name && e.aliases.iter().any(|a| a == key))
            })
            .collect();
        if !aliases.is_empty() {
            let _ = write!(line, " (also {})", aliases.join(", "));
        }
        let _ = writeln!(page, "{}", wrap_words(line.trim_end(), width, names.saturating_add(2)));
    }
    page
}

/// Maximum width of the column of names. The few longer names extend into the next column.
const MAX_NAME_WIDTH: usize = 24;

/// Returns the start of a text, up to the end of its first sentence or its first colon, without the
/// full stop.
fn find_first_sentence(text: &str) -> &str {
    let line = text.trim().lines().next().unwrap_or("");
    let line = line.split_once(". ").map_or(line, |(first, _)| first);
    // A colon within code, such as `x: x + 1`, does not end the text.
    let line = match line.split_once(": ") {
        Some((first, _)) if first.matches('`').count() % 2 == 0 => first,
        _ => line,
    };
    line.trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_has_a_description() {
        let context = crate::sql::session();
        let entries = collect_entries(&context);
        let table = |name: &str| find_table_syntax(name).is_some();
        for (name, found) in &entries {
            let known = found.iter().any(|e| e.documentation.is_some() || table(&e.name));
            let is_table = found.iter().all(|e| e.kind == "table function");
            assert!(known || is_table, "{name}");
        }
    }

    #[test]
    fn pages_are_plain_text_of_80_columns() {
        let context = crate::sql::session();
        let listed = list_functions(&context, "", 80);
        assert!(!listed.contains("](http") && !listed.contains("%Y %m"), "{listed}");
        let mut page = String::new();
        for entry in collect_entries(&context).values().flatten() {
            entry.write_page(&mut page, 80).unwrap();
        }
        let mut table: Option<usize> = None;
        let mut wrong = Vec::new();
        for line in page.lines() {
            let width = line.chars().count();
            let text = line.trim_start();
            let is_word = !text.contains(' ');
            let has_markdown = line.contains("](http")
                || line.contains("```")
                || text.starts_with("> ")
                || text.starts_with("+-")
                || line.contains("flags reference");
            // Lines with symbols are not checked, except lines of tables, because a symbol that is
            // two terminal columns wide counts as one character.
            let is_wide = !line.is_ascii() && !text.starts_with(['┌', '│', '╞', '└', '├']);
            if has_markdown || (width > 80 && !is_word && !is_wide) {
                wrong.push(line);
            }
            if text.starts_with('┌') {
                table = Some(width);
            }
            if text.starts_with(['│', '╞', '├', '└'])
                && !line.contains('🚀')
                && table != Some(width)
            {
                wrong.push(line);
            }
            let head =
                text.starts_with('│') && (text.contains("Utf8(\"") || text.contains("Int64(1)"));
            if head {
                wrong.push(line);
            }
        }
        assert_eq!(wrong, Vec::<&str>::new());
    }

    #[test]
    fn statements_break_outside_of_literals() {
        let line = "  SELECT 'a b c d e', x";
        assert_eq!(wrap_statement(line, 12), "  SELECT\n         'a b c d e',\n         x");
        let line = "  SELECT abc, DATE '2020-01-01'";
        assert_eq!(wrap_statement(line, 20), "  SELECT abc,\n         DATE '2020-01-01'");
        assert_eq!(wrap_statement("  | one two three |", 8), "  | one two three |");
        assert_eq!(wrap_statement("  SELECT 1 -- one two", 8), "  SELECT 1 -- one two");
        assert_eq!(wrap_statement("  SELECT 1;   -- 1", 12), "  SELECT 1;\n  -- 1");
        assert_eq!(wrap_statement("  SELECT 1;   -- 1", 80), "  SELECT 1;   -- 1");
    }
}
