//! Qualifies names of columns in the syntax tree, and finds the options of a star.

use datafusion::logical_expr::sqlparser::ast::{
    Expr, Ident, ObjectName, WildcardAdditionalOptions,
};
use datafusion::logical_expr::sqlparser::tokenizer::Span;

pub(super) fn qualify_column(table: &ObjectName, column: &Ident) -> Expr {
    let parts = table.0.iter().filter_map(|part| part.as_ident().cloned());
    let mut column = column.clone();
    column.span = Span::empty();
    Expr::CompoundIdentifier(parts.chain([column]).collect())
}

pub(super) fn find_last_ident(name: &ObjectName) -> Option<Ident> {
    name.0.last().and_then(|part| part.as_ident()).cloned()
}

/// Whether a star has no options besides EXCLUDE and REPLACE.
pub(super) fn has_known_options(options: &WildcardAdditionalOptions) -> bool {
    options.opt_ilike.is_none() && options.opt_except.is_none() && options.opt_rename.is_none()
}

pub(super) fn is_bare(options: &WildcardAdditionalOptions) -> bool {
    has_known_options(options) && options.opt_replace.is_none() && options.opt_exclude.is_none()
}
