//! Compares names as DataFusion's planner does: without regard to case, unless they are quoted.

use datafusion::logical_expr::sqlparser::ast::Ident;

/// Returns a name as DataFusion's planner does: its ASCII letters in lower case, unless it is
/// quoted.
pub(in crate::sql) fn fold_name(name: &Ident) -> String {
    match name.quote_style {
        Some(_) => name.value.clone(),
        None => name.value.to_ascii_lowercase(),
    }
}

/// Whether DataFusion's planner takes two names for the same name.
pub(in crate::sql) fn is_same_name(a: &Ident, b: &Ident) -> bool {
    fold_name(a) == fold_name(b)
}
