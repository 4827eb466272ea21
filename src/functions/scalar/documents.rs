//! Documentation of scalar functions and of short forms, which `.help` prints.

use datafusion::logical_expr::{DocSection, Documentation};

#[derive(Clone, Copy, Debug)]
pub(crate) struct DocumentationText {
    pub(crate) syntax: &'static str,
    /// Other forms of a call.
    pub(crate) also: &'static [&'static str],
    pub(crate) description: &'static str,
    pub(crate) args: &'static [(&'static str, &'static str)],
    /// The result for NULL, for empty values and for values out of range.
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

/// Expands to `Some` with the [`Documentation`] of a [`DocumentationText`], which is built once.
macro_rules! document {
    ($text:expr) => {{
        static DOCUMENT: std::sync::LazyLock<datafusion::logical_expr::Documentation> =
            std::sync::LazyLock::new(|| $text.to_documentation());
        Some(&*DOCUMENT)
    }};
}
pub(super) use document;
