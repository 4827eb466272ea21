//! Documentation of scalar functions, and of short forms such as `year(t)`, which are replaced by
//! other expressions before a statement is planned. The command `.help` prints this documentation.

use datafusion::logical_expr::{DocSection, Documentation};

#[derive(Clone, Copy, Debug)]
pub(crate) struct DocumentationText {
    pub(crate) syntax: &'static str,
    /// Other ways to write a call, besides `syntax`.
    pub(crate) also: &'static [&'static str],
    pub(crate) description: &'static str,
    pub(crate) args: &'static [(&'static str, &'static str)],
    /// A text that says what the result is for NULL, empty values and values out of range.
    pub(crate) missing: &'static str,
    /// Statements, one per line, each with its result in a comment. The tests run them.
    pub(crate) example: &'static str,
}

impl DocumentationText {
    pub(crate) const EMPTY: Self =
        Self { syntax: "", also: &[], description: "", args: &[], missing: "", example: "" };

    pub(crate) fn to_documentation(self) -> Documentation {
        let section = DocSection { include: true, label: "Scalar functions", description: None };
        let text = format!("{}\n\n{}", self.description, self.missing);
        let mut doc = Documentation::builder(section, text, self.syntax)
            .with_sql_example(format!("```sql\n{}\n```", self.example));
        for form in self.also {
            doc = doc.with_alternative_syntax(*form);
        }
        for (name, meaning) in self.args {
            doc = doc.with_argument(*name, *meaning);
        }
        doc.build()
    }
}

/// Expands to `Some` with the [`Documentation`] that is built from a [`DocumentationText`] on first
/// use.
macro_rules! document {
    ($text:expr) => {{
        static DOCUMENT: std::sync::LazyLock<datafusion::logical_expr::Documentation> =
            std::sync::LazyLock::new(|| $text.to_documentation());
        Some(&*DOCUMENT)
    }};
}
pub(super) use document;
