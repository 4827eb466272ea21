//! What functions do, from the documentation they carry themselves.

use std::collections::BTreeMap;
use std::fmt::Write;

use datafusion::common::utils::datafusion_strsim::levenshtein;
use datafusion::logical_expr::Documentation;
use datafusion::prelude::SessionContext;

use crate::cli::error::{Failure, Outcome};

/// Kind and documentation of every function, by name and alias.
struct Entry {
    name: String,
    kind: &'static str,
    aliases: Vec<String>,
    documentation: Option<Documentation>,
}

fn entries(context: &SessionContext) -> BTreeMap<String, Vec<Entry>> {
    let state = context.state();
    let mut entries: BTreeMap<String, Vec<Entry>> = BTreeMap::new();
    let mut add = |key: &str, kind, name: &str, aliases: &[String], doc: Option<&Documentation>| {
        entries.entry(key.to_owned()).or_default().push(Entry {
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
            let entry = Entry { name, kind, aliases: Vec::new(), documentation: None };
            entries.insert(key.to_owned(), vec![entry]);
        }
    }
    entries
}

/// Functions that stand in FROM, which carry no documentation of their own: name, syntax, what they give.
const IN_FROM: [(&str, &str, &str); 7] = [
    (
        "meds",
        "meds('DIR')",
        "Health records in the MEDS layout: a row per subject, with a list of its events.",
    ),
    (
        "meds_asof",
        "meds_asof('DIR', 'labels/')",
        "Health records as of labels: a row per label, with the events up to its prediction time and nothing after.",
    ),
    ("vocab", "vocab('codes.parquet'), vocab('DIR')", "Codes and their tokens."),
    (
        "ragged_nest",
        "ragged_nest(query, 'key', ..)",
        "Rows as lists: one row per value of the first key, an axis per further key. The query stands in parentheses, as a text, or is the name of a table or file.",
    ),
    (
        "ragged_explode",
        "ragged_explode(query [, keep_empty => true] [, positions => true])",
        "Lists as rows: one row per innermost element, everything above repeated. The query stands in parentheses, as a text, or is the name of a table or file.",
    ),
    (
        "ragged_axes",
        "ragged_axes(query)",
        "One row per axis: its columns, elements, shortest, longest and mean list, empty lists.",
    ),
    (
        "summarize",
        "summarize(query), SUMMARIZE query",
        "One row per column: its type, extremes, number of different values and of NULL, and the shape of its lists.",
    ),
];

/// How a function of FROM is called.
pub(super) fn in_from(name: &str) -> Option<&'static str> {
    IN_FROM.iter().find(|(known, ..)| *known == name).map(|(_, syntax, _)| *syntax)
}

/// The page of one function.
pub(super) fn function(context: &SessionContext, name: &str, width: usize) -> Outcome<String> {
    let name = name.trim_end_matches("()").to_lowercase();
    let entries = entries(context);
    if let Some((_, syntax, what)) = IN_FROM.iter().find(|(known, ..)| *known == name) {
        return Ok(format!("{syntax}    (table function)\n\n{what}\n"));
    }
    let Some(found) = entries.get(&name) else {
        let near: Vec<&str> =
            entries.keys().filter(|k| k.contains(&name)).map(String::as_str).collect();
        let hint = match near.split_at_checked(12) {
            Some((first, more)) if !more.is_empty() => {
                let first = first.join(", ");
                format!("; there are {first} and {} more, which .functions lists", more.len())
            }
            _ if near.is_empty() => {
                let nearest = nearest(&name, entries.keys().map(String::as_str));
                match nearest.is_empty() {
                    true => "; .functions lists them".to_owned(),
                    false => format!("; did you mean {}?", nearest.join(" or ")),
                }
            }
            _ => format!("; there are {}", near.join(", ")),
        };
        return Err(Failure::message(format!("no function {name:?}{hint}")));
    };
    let mut page = String::new();
    for entry in found {
        // Writing to a string cannot fail.
        let _ = entry.page(&mut page, width);
    }
    Ok(page)
}

impl Entry {
    fn page(&self, page: &mut String, width: usize) -> std::fmt::Result {
        let Some(doc) = &self.documentation else {
            return writeln!(page, "{} is a {}, too: FROM {}(..)", self.name, self.kind, self.name);
        };
        writeln!(page, "{}    ({})\n", doc.syntax_example, self.kind)?;
        for line in doc.description.trim().lines() {
            writeln!(page, "{}", wrap_words(line, width, 0))?;
        }
        for syntax in doc.alternative_syntax.iter().flatten() {
            writeln!(page, "also: {syntax}")?;
        }
        if let Some(arguments) = &doc.arguments {
            let names = arguments.iter().map(|(n, _)| n.len()).max().unwrap_or(0);
            writeln!(page)?;
            for (name, what) in arguments {
                let line = format!("  {name:<names$}  {}", what.trim());
                writeln!(page, "{}", wrap_words(&line, width, names.saturating_add(4)))?;
            }
        }
        if let Some(example) = &doc.sql_example {
            let lines = example.lines().filter(|l| !l.starts_with("```"));
            writeln!(page)?;
            for line in lines {
                writeln!(page, "  {line}")?;
            }
        }
        if !self.aliases.is_empty() {
            let line = format!("aliases: {}", self.aliases.join(", "));
            writeln!(page, "\n{}", wrap_words(&line, width, 2))?;
        }
        if let Some(related) = doc.related_udfs.as_ref().filter(|r| !r.is_empty()) {
            let line = format!("see also: {}", related.join(", "));
            writeln!(page, "\n{}", wrap_words(&line, width, 2))?;
        }
        Ok(())
    }
}

/// The names that are spelled most like one, if any are near it.
fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let near = name.chars().count() / 3;
    let mut least = near;
    let mut found = Vec::new();
    for candidate in names {
        let distance = levenshtein(name, candidate);
        if distance < least {
            found.clear();
            least = distance;
        }
        if distance == least && distance <= near {
            found.push(candidate);
        }
    }
    found.truncate(5);
    found
}

/// A line cut between words, so that no part is wider than `width` unless a word is; the parts after
/// the first are indented.
fn wrap_words(line: &str, width: usize, indent: usize) -> String {
    let mut wrapped = String::new();
    let mut rest = line;
    let mut room = width;
    while rest.chars().count() > room {
        let limit = rest.char_indices().nth(room).map_or(rest.len(), |(i, _)| i);
        // The indentation of the line itself is no place to cut.
        let start = rest.len() - rest.trim_start().len();
        let cut = rest[start..=limit]
            .rfind(' ')
            .or_else(|| rest[limit..].find(' ').map(|i| i + limit - start));
        let Some(cut) = cut.map(|cut| cut + start) else { break };
        wrapped.push_str(rest[..cut].trim_end());
        wrapped.push('\n');
        wrapped.push_str(&" ".repeat(indent));
        rest = rest[cut..].trim_start();
        room = width.saturating_sub(indent).max(1);
    }
    wrapped.push_str(rest);
    wrapped
}

/// Names of the functions that contain `text`, with the first sentence about each.
pub(super) fn functions(context: &SessionContext, text: &str) -> String {
    let text = text.to_lowercase();
    let entries = entries(context);
    let shown: Vec<_> = entries.iter().filter(|(name, _)| name.contains(&text)).collect();
    let width = shown.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut page = String::new();
    for (name, found) in shown {
        let documented = found.iter().find_map(|e| e.documentation.as_ref());
        let in_from = IN_FROM.iter().find(|(known, ..)| known == name).map(|(.., what)| *what);
        let text = in_from.or(documented.map(|d| d.description.as_str())).unwrap_or("");
        let line = text.trim().lines().next().unwrap_or("");
        let what = line.split_once(". ").map_or(line, |(first, _)| first);
        let _ = writeln!(page, "{}", format!("{name:<width$}  {what}").trim_end());
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_between_words() {
        assert_eq!(wrap_words("one two three", 80, 0), "one two three");
        assert_eq!(wrap_words("one two three", 8, 0), "one two\nthree");
        assert_eq!(wrap_words("one two three", 7, 0), "one two\nthree");
        assert_eq!(wrap_words("  x  one two three", 9, 5), "  x  one\n     two\n     three");
        assert_eq!(wrap_words("a longer_than_that b", 5, 2), "a\n  longer_than_that\n  b");
        assert_eq!(wrap_words("müßig größer", 6, 0), "müßig\ngrößer");
        assert_eq!(wrap_words("longer_than_that", 5, 2), "longer_than_that");
        assert_eq!(wrap_words("", 5, 2), "");
    }

    #[test]
    fn the_nearest_names_are_those_of_the_least_distance() {
        let names = ["ragged_max", "ragged_mean", "ragged_minimum", "x"];
        assert_eq!(nearest("ragged_meann", names.into_iter()), ["ragged_mean"]);
        assert_eq!(nearest("ragged_maen", names.into_iter()), ["ragged_max", "ragged_mean"]);
        assert_eq!(nearest("something", names.into_iter()), [""; 0]);
        assert_eq!(nearest("", names.into_iter()), [""; 0]);
    }
}
