//! Documentation of functions: the source of `.help` and of `docs/functions/`.

use std::fmt::Write;

use datafusion::logical_expr::{DocSection, Documentation};

/// Pages of `docs/functions/`, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Section {
    Shape,
    Index,
    Reduce,
    Running,
    Elementwise,
    Structure,
    Codes,
    Sparse,
    Dense,
    Aggregate,
}

impl Section {
    pub(crate) const ALL: [Self; 10] = [
        Self::Shape,
        Self::Index,
        Self::Reduce,
        Self::Running,
        Self::Elementwise,
        Self::Structure,
        Self::Codes,
        Self::Sparse,
        Self::Dense,
        Self::Aggregate,
    ];

    fn section(self) -> DocSection {
        let (label, description) = match self {
            Self::Shape => ("Shape", "How many axes and elements, and their arrangement."),
            Self::Index => (
                "Indexing",
                "Elements by position, range, coordinates or mask. Positions count from 0, ranges exclude their end, negatives count from the end, as in Python.",
            ),
            Self::Reduce => ("Reductions", "One value per list, or one per row."),
            Self::Elementwise => (
                "Elementwise",
                "Arithmetic, comparison and logic over the leaves. The operators stand for the functions named beside them.",
            ),
            Self::Running => (
                "Running",
                "One value for each value, from those before it in its list, and order within lists.",
            ),
            Self::Structure => ("Structure", "Lists side by side, lists of structs, coordinates."),
            Self::Codes => (
                "Text and codes",
                "Tests of text and of membership, vocabularies, and what is below a code. Codes are long texts that come back thousands of times: where they are a dictionary, as in `meds('DIR')`, a test runs once over its values, and each element takes the answer by its number. `LIKE`, `ILIKE`, `IN` (and `NOT` before them), `starts_with` and `regexp_like` stand for these functions in statements that `serrate` or `serrate::sql::sql` runs; `~`, `~*` and comparisons everywhere.",
            ),
            Self::Sparse => (
                "Sparse tensors and dictionaries",
                "Look-ups in tables `STORED AS DOK`: sparse tensors, whose keys are an index per axis, and dictionaries, whose keys are columns of any type.",
            ),
            Self::Dense => ("Dense", "Padded tensors, masks and padded lists."),
            Self::Aggregate => ("Aggregates", "Functions over many rows end in `_agg`."),
        };
        DocSection { include: true, label, description: Some(description) }
    }

    /// Title of the chapter.
    pub(crate) fn label(self) -> &'static str {
        self.section().label
    }

    /// Name of the page below `docs/functions/`.
    pub(crate) fn file(self) -> String {
        format!("{}.md", self.label().to_lowercase().replace(' ', "-"))
    }

    /// What its functions have in common.
    pub(crate) fn description(self) -> &'static str {
        self.section().description.unwrap_or_default()
    }
}

/// Documentation of one function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Doc {
    /// Chapter.
    pub(crate) section: Section,
    /// What it does, as a sentence or two.
    pub(crate) description: &'static str,
    /// Ways to call it.
    pub(crate) syntax: &'static [&'static str],
    /// Arguments: name and meaning.
    pub(crate) args: &'static [(&'static str, &'static str)],
    /// Nulls, empty lists, NaN, positions out of range.
    pub(crate) missing: &'static str,
    /// The nearest thing DuckDB has.
    pub(crate) duckdb: &'static str,
    /// Statements with their output, which the tests run and compare.
    pub(crate) example: &'static str,
}

impl Doc {
    /// The first sentence of the description, as a cell of a Markdown table.
    pub(crate) fn summary(&self) -> String {
        let end = self.description.find(". ").unwrap_or(self.description.len());
        let first = self.description.get(..end).unwrap_or(self.description);
        first.trim_end_matches('.').replace('|', "\\|")
    }

    pub(crate) fn to_documentation(self) -> Documentation {
        let mut text = self.description.to_string();
        if !self.missing.is_empty() {
            let _ = write!(text, "\n\n{}", self.missing);
        }
        if !self.duckdb.is_empty() {
            let _ = write!(text, "\n\nIn DuckDB: {}", self.duckdb);
        }
        let first = self.syntax.first().copied().unwrap_or_default();
        let mut doc = Documentation::builder(self.section.section(), text, first)
            .with_sql_example(format!("```sql\n{}\n```", self.example.trim_end()));
        for more in self.syntax.iter().skip(1) {
            doc = doc.with_alternative_syntax(*more);
        }
        for (name, meaning) in self.args {
            doc = doc.with_argument(*name, *meaning);
        }
        doc.build()
    }
}

/// Columns of a page of `docs/functions/`.
const WIDTH: usize = 100;

/// Breaks a paragraph of a page into lines.
pub(crate) fn wrap_paragraph(paragraph: &str) -> String {
    format!("{}\n", wrap_words(paragraph, WIDTH, 0))
}

/// Breaks a line between words, so that no part is wider than `width` unless a word is. Parts after
/// the first are indented.
pub(crate) fn wrap_words(line: &str, width: usize, indent: usize) -> String {
    let mut wrapped = String::new();
    let mut rest = line;
    let mut capacity = width;
    while rest.chars().count() > capacity {
        let limit = rest.char_indices().nth(capacity).map_or(rest.len(), |(i, _)| i);
        // The indentation of the line itself is not a place to cut.
        let start = rest.len() - rest.trim_start().len();
        let cut = rest[start..=limit]
            .rfind(' ')
            .or_else(|| rest[limit..].find(' ').map(|i| i + limit - start));
        let Some(cut) = cut.map(|cut| cut + start) else { break };
        wrapped.push_str(rest[..cut].trim_end());
        wrapped.push('\n');
        wrapped.push_str(&" ".repeat(indent));
        rest = rest[cut..].trim_start();
        capacity = width.saturating_sub(indent).max(1);
    }
    wrapped.push_str(rest);
    wrapped
}

/// Writes the part of a page that is about one function.
pub(crate) fn entry(out: &mut String, name: &str, aliases: &[&str], doc: &Doc) {
    let _ = writeln!(out, "## `{name}`\n\n{}", wrap_paragraph(doc.description));
    let _ = writeln!(out, "```sql\n{}\n```\n", doc.syntax.join("\n"));
    if !aliases.is_empty() {
        let _ = writeln!(out, "Also called `{}`.\n", aliases.join("`, `"));
    }
    if !doc.args.is_empty() {
        for (arg, meaning) in doc.args {
            let _ = writeln!(out, "{}", wrap_words(&format!("- `{arg}`: {meaning}"), WIDTH, 2));
        }
        out.push('\n');
    }
    if !doc.missing.is_empty() {
        let _ = writeln!(out, "{}", wrap_paragraph(doc.missing));
    }
    if !doc.duckdb.is_empty() {
        let _ = writeln!(out, "{}", wrap_paragraph(&format!("In DuckDB: {}", doc.duckdb)));
    }
    let _ = writeln!(out, "```sql\n{}\n```\n", doc.example.trim_end());
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
}
