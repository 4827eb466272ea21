//! What functions do, from the documentation they carry themselves.

use std::collections::BTreeMap;
use std::fmt::Write;

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

/// The page of one function.
pub(super) fn function(context: &SessionContext, name: &str) -> Outcome<String> {
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
            _ if near.is_empty() => "; .functions lists them".to_owned(),
            _ => format!("; there are {}", near.join(", ")),
        };
        return Err(Failure::message(format!("no function {name:?}{hint}")));
    };
    let mut page = String::new();
    for entry in found {
        // Writing to a string cannot fail.
        let _ = entry.page(&mut page);
    }
    Ok(page)
}

impl Entry {
    fn page(&self, page: &mut String) -> std::fmt::Result {
        let Some(doc) = &self.documentation else {
            return writeln!(page, "{} ({}) has no documentation", self.name, self.kind);
        };
        writeln!(page, "{}    ({})\n\n{}", doc.syntax_example, self.kind, doc.description.trim())?;
        for syntax in doc.alternative_syntax.iter().flatten() {
            writeln!(page, "also: {syntax}")?;
        }
        if let Some(arguments) = &doc.arguments {
            let width = arguments.iter().map(|(n, _)| n.len()).max().unwrap_or(0);
            writeln!(page)?;
            for (name, what) in arguments {
                writeln!(page, "  {name:<width$}  {}", what.trim())?;
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
            writeln!(page, "\naliases: {}", self.aliases.join(", "))?;
        }
        if let Some(related) = doc.related_udfs.as_ref().filter(|r| !r.is_empty()) {
            writeln!(page, "\nsee also: {}", related.join(", "))?;
        }
        Ok(())
    }
}

/// Names of the functions that contain `text`, with the first sentence about each.
pub(super) fn functions(context: &SessionContext, text: &str) -> String {
    let text = text.to_lowercase();
    let entries = entries(context);
    let shown: Vec<_> = entries.iter().filter(|(name, _)| name.contains(&text)).collect();
    let width = shown.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut page = String::new();
    for (name, found) in shown {
        let what = found.iter().find_map(|e| e.documentation.as_ref()).map_or("", |d| {
            let line = d.description.trim().lines().next().unwrap_or("");
            line.split_once(". ").map_or(line, |(first, _)| first)
        });
        let _ = writeln!(page, "{}", format!("{name:<width$}  {what}").trim_end());
    }
    page
}
