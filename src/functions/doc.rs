//! Documentation of functions: what `.help` shows and `docs/functions.md` is made of.

use std::fmt::Write;

use datafusion::logical_expr::{DocSection, Documentation};

/// Chapters of `docs/functions.md`, in order.
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

/// One entry of `docs/functions.md`.
pub(crate) fn entry(out: &mut String, name: &str, aliases: &[&str], doc: &Doc) {
    let _ = writeln!(out, "### `{name}`\n\n{}\n", doc.description);
    let _ = writeln!(out, "```sql\n{}\n```\n", doc.syntax.join("\n"));
    if !aliases.is_empty() {
        let _ = writeln!(out, "Also called `{}`.\n", aliases.join("`, `"));
    }
    if !doc.args.is_empty() {
        for (arg, meaning) in doc.args {
            let _ = writeln!(out, "- `{arg}`: {meaning}");
        }
        out.push('\n');
    }
    if !doc.missing.is_empty() {
        let _ = writeln!(out, "{}\n", doc.missing);
    }
    if !doc.duckdb.is_empty() {
        let _ = writeln!(out, "In DuckDB: {}\n", doc.duckdb);
    }
    let _ = writeln!(out, "```sql\n{}\n```\n", doc.example.trim_end());
}
