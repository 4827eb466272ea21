//! Documentation of functions, from which `.help` and `docs/functions/` are generated.

use std::fmt::Write;

use datafusion::logical_expr::{DocSection, Documentation};

/// The sections of the documentation, in order. Each section is a page of `docs/functions/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FunctionSection {
    Shape,
    Index,
    Reduce,
    Running,
    Within,
    Elementwise,
    Structure,
    Codes,
    Sparse,
    Dense,
    Aggregate,
}

impl FunctionSection {
    pub(crate) const ALL: [Self; 11] = [
        Self::Shape,
        Self::Index,
        Self::Reduce,
        Self::Running,
        Self::Within,
        Self::Elementwise,
        Self::Structure,
        Self::Codes,
        Self::Sparse,
        Self::Dense,
        Self::Aggregate,
    ];

    fn section(self) -> DocSection {
        let (label, description) = match self {
            Self::Shape => ("Shape", "Functions that return, change and merge axes."),
            Self::Index => (
                "Indexing",
                "Elements by position, range, coordinates or mask. Positions count from 0, ranges exclude their end, and negative positions count from the end, as in Python.",
            ),
            Self::Reduce => ("Reductions", "Reductions return one value per list, or one per row."),
            Self::Elementwise => (
                "Elementwise",
                "Arithmetic, comparison and logic on leaves. Operators on lists call these functions.",
            ),
            Self::Running => (
                "Running",
                "Running functions return one value per value, computed from the values before it in its list. Sorting and ranking work within lists.",
            ),
            Self::Within => (
                "Groups and windows",
                "Groups of the elements of a list by the values of a sibling list, and windows over time, without leaving the row. A group or a window is a list, which any reduction with axis -1 takes.",
            ),
            Self::Structure => ("Structure", "Sibling lists, lists of structs, and coordinates."),
            Self::Codes => (
                "Text and codes",
                "Tests of strings and of membership, vocabularies, and descendants of codes. Codes are long strings with many repetitions. If they are a dictionary, as in `meds('DIR')`, a test runs once per distinct value, and each element looks its result up by dictionary key. In statements that `serrate` or `serrate::sql::sql` runs, `LIKE`, `ILIKE`, `IN` (also with `NOT`), `starts_with` and `regexp_like` on lists call these functions. `~`, `~*` and comparisons do so everywhere.",
            ),
            Self::Sparse => (
                "Sparse tensors and dictionaries",
                "Look-ups in tables `STORED AS DOK`: sparse tensors, whose keys are one index per axis, and dictionaries, whose keys are columns of any type.",
            ),
            Self::Dense => ("Dense", "Padded tensors, masks and padded lists."),
            Self::Aggregate => {
                ("Aggregates", "Aggregates work across rows. Their names end in `_agg`.")
            }
        };
        DocSection { include: true, label, description: Some(description) }
    }

    pub(crate) fn label(self) -> &'static str {
        self.section().label
    }

    /// Returns the file name of the page of this section in `docs/functions/`.
    pub(crate) fn file(self) -> String {
        format!("{}.md", self.label().to_lowercase().replace(' ', "-"))
    }

    pub(crate) fn description(self) -> &'static str {
        self.section().description.unwrap_or_default()
    }
}

/// The argument `x` of functions that take lists of any depth, for [`Doc::args`].
pub(super) const X: (&str, &str) = ("x", "a list of any depth: List, LargeList or FixedSizeList");

#[derive(Clone, Copy, Debug)]
pub(crate) struct Doc {
    pub(crate) section: FunctionSection,
    pub(crate) description: &'static str,
    pub(crate) syntax: &'static [&'static str],
    pub(crate) args: &'static [(&'static str, &'static str)],
    /// How the function treats NULL, empty lists, NaN and positions out of range.
    pub(crate) missing: &'static str,
    /// The closest equivalent in DuckDB, as Markdown.
    pub(crate) duckdb: &'static str,
    /// SQL statements with their output, which the tests run and compare.
    pub(crate) example: &'static str,
}

impl Doc {
    pub(crate) const EMPTY: Self = Self {
        section: FunctionSection::Shape,
        description: "",
        syntax: &[],
        args: &[],
        missing: "",
        duckdb: "",
        example: "",
    };

    /// Returns the first sentence of the description, as a cell of a Markdown table.
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

/// Maximum line width of `docs/functions/`, in characters.
const MAX_LINE_WIDTH: usize = 100;

pub(crate) fn wrap_paragraph(paragraph: &str) -> String {
    format!("{}\n", wrap_words(paragraph, MAX_LINE_WIDTH, 0))
}

/// Breaks a line at spaces into parts of at most `width` characters. All parts but the first are
/// indented by `indent` spaces.
pub(crate) fn wrap_words(line: &str, width: usize, indent: usize) -> String {
    let mut wrapped = String::new();
    let mut rest = line;
    let mut capacity = width;
    while rest.chars().count() > capacity {
        let limit = rest.char_indices().nth(capacity).map_or(rest.len(), |(i, _)| i);
        // Looks for a space only after the indentation of the line.
        let start = rest.len() - rest.trim_start().len();
        let before = match rest[limit..].starts_with(' ') {
            true => Some(limit),
            false => rest.get(start..limit).and_then(|part| part.rfind(' ')).map(|i| i + start),
        };
        let cut = before.or_else(|| rest[limit..].find(' ').map(|i| i + limit));
        let Some(cut) = cut else { break };
        wrapped.push_str(rest[..cut].trim_end());
        wrapped.push('\n');
        wrapped.push_str(&" ".repeat(indent));
        rest = rest[cut..].trim_start();
        capacity = width.saturating_sub(indent).max(1);
    }
    wrapped.push_str(rest);
    wrapped
}

pub(crate) fn write_entry(out: &mut String, name: &str, aliases: &[&str], doc: &Doc) {
    let _ = writeln!(out, "## `{name}`\n\n{}", wrap_paragraph(doc.description));
    let _ = writeln!(out, "```sql\n{}\n```\n", doc.syntax.join("\n"));
    if !aliases.is_empty() {
        let _ = writeln!(out, "Also called `{}`.\n", aliases.join("`, `"));
    }
    if !doc.args.is_empty() {
        for (arg, meaning) in doc.args {
            let _ = writeln!(
                out,
                "{}",
                wrap_words(&format!("- `{arg}`: {meaning}"), MAX_LINE_WIDTH, 2)
            );
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
