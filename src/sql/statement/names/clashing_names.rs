//! Plans statements in which DataFusion gives two columns of a SELECT the same name, which is an
//! error.
//!
//! DataFusion names a column after its planned expression, which omits casts and replaces operators
//! and aliases of functions: `SELECT *, a::VARCHAR`, `SELECT substr(s, 2), substring(s, 2)`. SQL
//! has no such error.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::error::DataFusionError;
use datafusion::logical_expr::sqlparser::ast::{
    BinaryOperator, CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, Select, SelectItem, TableFactor, TypedString, Value, Visit, VisitMut,
    VisitorMut,
};

use crate::functions::{
    AS_TIMESTAMP, FILTER, ON_LISTS, PREDICATES, SIGNED, TRY_AS_TIMESTAMP, WITH_DIGITS,
};
use crate::sql::base::syntax::{has_select, name_item};
use crate::sql::statement::columns::set_names::{
    add_identifiers, find_expr_name, find_unused_name, is_name,
};
use crate::sql::statement::names::unnamed_queries::UNNAMED;

/// Whether a SELECT of a statement has a computed column without an alias next to other columns.
pub(in crate::sql::statement) fn may_clash<S: Visit>(statement: &S) -> bool {
    has_select(statement, |select| {
        select.projection.len() > 1 && select.projection.iter().any(is_computed)
    })
}

pub(in crate::sql::statement) fn is_clash(e: &DataFusionError) -> bool {
    let message = e.to_string();
    message.contains("require unique expression names")
        || message.contains("contains duplicate unqualified field name")
}

/// Gives every computed column without an alias its text as alias.
pub(in crate::sql::statement) fn name_computed<S: VisitMut + Visit>(statement: &mut S) {
    let mut avoided = HashSet::new();
    add_identifiers(statement, &mut avoided);
    let _ = VisitMut::visit(statement, &mut NameComputed { avoided });
}

fn is_computed(item: &SelectItem) -> bool {
    matches!(item, SelectItem::UnnamedExpr(e) if !is_name(e))
}

struct NameComputed {
    /// Names that an alias must not get: the identifiers of the statement, in lower case. An alias
    /// that a clause mentions would hide a column of FROM.
    avoided: HashSet<String>,
}

impl VisitorMut for NameComputed {
    type Break = ();

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        if select.projection.len() < 2 {
            return ControlFlow::Continue(());
        }
        let named = select.projection.iter().filter_map(|item| match item {
            SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.to_lowercase()),
            SelectItem::UnnamedExpr(e) if is_name(e) => Some(find_expr_name(e).to_lowercase()),
            _ => None,
        });
        let mut used: HashSet<String> = named.collect();
        for item in &mut select.projection {
            let SelectItem::UnnamedExpr(expr) = item else { continue };
            if !is_name(expr) {
                let name = find_unused_name(&display_written(expr), &mut used, &self.avoided);
                name_item(item, name);
            }
        }
        ControlFlow::Continue(())
    }
}

/// Returns the text of an expression as it was written: without the aliases that `unnamed_queries`
/// has added to subqueries in FROM, and without the custom operators of `times` and `predicates`.
fn display_written(expr: &Expr) -> String {
    let mut written = expr.clone();
    let _ = VisitMut::visit(&mut written, &mut RestoreWritten);
    find_expr_name(&written)
}

struct RestoreWritten;

impl VisitorMut for RestoreWritten {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Derived { alias, .. } = factor
            && alias.as_ref().is_some_and(|alias| alias.name.value.starts_with(UNNAMED))
        {
            *alias = None;
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::BinaryOp { left, op: BinaryOperator::Custom(word), right } = expr {
            let [left, right] = [left, right]
                .map(|operand| std::mem::replace(&mut **operand, Expr::value(Value::Null)));
            let word = std::mem::take(word);
            *expr = restore_operation(word, left, right);
        }
        ControlFlow::Continue(())
    }
}

/// Returns the expression from which an earlier rewrite made the operation `left word right` with
/// the custom operator `word`, such as the cast to TIMESTAMP for `AS_TIMESTAMP`. An operation whose
/// word is also that of the original expression, such as LIKE, stays an operation.
fn restore_operation(word: String, left: Expr, right: Expr) -> Expr {
    let [_, _, isin] = PREDICATES;
    let negated_isin = format!("NOT {isin}");
    match (word.as_str(), left, right) {
        (AS_TIMESTAMP, left, Expr::Cast { data_type, .. }) => {
            restore_cast(CastKind::Cast, left, data_type)
        }
        (TRY_AS_TIMESTAMP, left, Expr::Cast { data_type, .. }) => {
            restore_cast(CastKind::TryCast, left, data_type)
        }
        (SIGNED | ON_LISTS | WITH_DIGITS, left, _) => left,
        (FILTER, Expr::Function(mut call), mask) => {
            call.filter = Some(Box::new(mask));
            Expr::Function(call)
        }
        (word, left, Expr::Function(Function { args: FunctionArguments::List(list), .. }))
            if word == isin || word == negated_isin =>
        {
            let items = list.args.into_iter().filter_map(|arg| match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(item)) => Some(item),
                _ => None,
            });
            let negated = word == negated_isin;
            Expr::InList { expr: Box::new(left), list: items.collect(), negated }
        }
        (word, left, right) => Expr::BinaryOp {
            left: Box::new(left),
            op: BinaryOperator::Custom(word.to_owned()),
            right: Box::new(right),
        },
    }
}

/// Returns a cast to TIMESTAMP, or `TIMESTAMP '..'` for a string. An earlier rewrite, in the module
/// [`times`](crate::sql::workarounds::types::times), wrote TIMESTAMP(6) instead of TIMESTAMP, so 6
/// is removed again.
fn restore_cast(kind: CastKind, value: Expr, mut data_type: DataType) -> Expr {
    if let DataType::Timestamp(digits @ Some(6), _) = &mut data_type {
        *digits = None;
    }
    match (kind, value) {
        (CastKind::Cast, Expr::Value(value)) if value.value.clone().into_string().is_some() => {
            Expr::TypedString(TypedString { data_type, value, uses_odbc_syntax: false })
        }
        (kind, value) => {
            let expr = Box::new(value);
            Expr::Cast { kind, expr, data_type, array: false, format: None }
        }
    }
}
