//! Renames columns that have the same name in a SELECT or in the inputs of a set operation.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::LazyLock;

use datafusion::functions::all_default_functions;
use datafusion::functions_aggregate::all_default_aggregate_functions;
use datafusion::functions_nested::all_default_nested_functions;
use datafusion::logical_expr::sqlparser::ast::{
    Expr, Function, FunctionArguments, Ident, ObjectName, Select, SelectItem, SetExpr, Value,
    Visit, visit_expressions, visit_expressions_mut,
};

use crate::sql::base::syntax::{has_query, to_plain_name};
use crate::sql::statement::expressions::expr_rewrites::complete_slices;

/// Maximum number of bytes in the name of an expression that is copied. Copying a very deep
/// expression overflows the stack.
const LONGEST_NAME: usize = 1_000;

/// Renames the second of two columns with the same name within an input of UNION, EXCEPT or INTERSECT.
///
/// Set operations match columns by position, but DataFusion finds them by name. Obsolete once the test
/// `stock_set_operations_by_name_still_fail` fails.
///
/// `ordered` are the identifiers in ORDER BY of the query.
pub(in crate::sql) fn name_apart(body: &mut SetExpr, ordered: &HashSet<String>) {
    if let SetExpr::SetOperation { left, right, .. } = body {
        name_input(left, ordered);
        name_input(right, ordered);
    }
}

fn name_input(input: &mut SetExpr, ordered: &HashSet<String>) {
    match input {
        SetExpr::Select(select) => name_columns(select, ordered),
        SetExpr::Query(query) => name_input(query.body.as_mut(), ordered),
        // A nested set operation stays unchanged here. The visitor renames its inputs when it reaches them.
        _ => {}
    }
}

fn find_aliases(select: &Select) -> HashSet<String> {
    let aliases = select.projection.iter().filter_map(|item| match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.to_lowercase()),
        _ => None,
    });
    aliases.collect()
}

/// Returns `name` if it is not in `used`, otherwise `name` with a number appended, such that the
/// result is neither in `used` nor in `avoided`. `avoided` has the names that clauses such as ORDER
/// BY mention: an alias with such a name would hide a column of FROM.
pub(in crate::sql) fn find_unused_name(
    name: &str,
    used: &mut HashSet<String>,
    avoided: &HashSet<String>,
) -> String {
    if used.insert(name.to_lowercase()) {
        return name.to_owned();
    }
    let mut number = 1usize;
    loop {
        let other = format!("{name}_{number}");
        if !avoided.contains(&other.to_lowercase()) && used.insert(other.to_lowercase()) {
            return other;
        }
        number = number.saturating_add(1);
    }
}

/// Adds the identifiers in the expressions of a node to `names`, in lower case.
pub(in crate::sql) fn add_identifiers<V: Visit>(node: &V, names: &mut HashSet<String>) {
    let _ = visit_expressions(node, |e| {
        match e {
            Expr::Identifier(name) => {
                names.insert(name.value.to_lowercase());
            }
            Expr::CompoundIdentifier(parts) => {
                names.extend(parts.iter().map(|part| part.value.to_lowercase()));
            }
            _ => {}
        }
        ControlFlow::<()>::Continue(())
    });
}

/// Gives aliases to columns of a SELECT to which DataFusion would give the same name, which is an error:
/// subqueries (`<subquery>`), and expressions that differ only in casts, omitted bounds of slices and aliases
/// of functions (the second becomes `x_1`).
///
/// `ordered` are the identifiers in ORDER BY of the query.
pub(in crate::sql) fn name_repeated(select: &mut Select, ordered: &HashSet<String>) {
    let is_query = |item: &SelectItem| matches!(item, SelectItem::UnnamedExpr(e) if has_query(e));
    let several_queries = select.projection.iter().filter(|item| is_query(item)).count() > 1;
    // If FROM has only one table, `x` and `t.x` are the same column and get the same name.
    let one_table = matches!(select.from.as_slice(), [from] if from.joins.is_empty());
    let plain = |name: &Ident| match name.quote_style {
        Some(_) => name.value.clone(),
        None => name.value.to_lowercase(),
    };
    let key_of_bare = |expr: &Expr| match expr {
        Expr::Identifier(name) => plain(name),
        Expr::CompoundIdentifier(parts) if one_table && parts.len() == 2 => {
            parts.last().map(plain).unwrap_or_default()
        }
        // The planner treats `//` and `/` as the same operator, so `a // b` and `a / b` get the same name.
        other => other.to_string().replace(" // ", " / "),
    };
    let key = |expr: &Expr| {
        let key = key_of_bare(expr);
        match key.len() <= LONGEST_NAME {
            true => key_of_bare(&remove_casts(expr)),
            false => key,
        }
    };
    let mut seen: HashSet<String> = HashSet::new();
    let mut repeated = Vec::with_capacity(select.projection.len());
    for item in &select.projection {
        repeated.push(match item {
            SelectItem::UnnamedExpr(expr) => !seen.insert(key(expr)),
            _ => false,
        });
    }
    for at in find_queries_of_used_names(select) {
        repeated[at] = true;
    }
    if !several_queries && !repeated.contains(&true) {
        return;
    }
    let mut avoided = ordered.clone();
    add_identifiers(select, &mut avoided);
    let mut used = find_aliases(select);
    for (item, repeated) in select.projection.iter().zip(&repeated) {
        if let SelectItem::UnnamedExpr(expr) = item
            && !repeated
            && !(several_queries && is_query(item))
        {
            used.insert(name_of(expr).to_lowercase());
        }
    }
    for (item, repeated) in select.projection.iter_mut().zip(repeated) {
        let named = repeated || several_queries && is_query(item);
        let SelectItem::UnnamedExpr(expr) = item else { continue };
        if named {
            let alias =
                Ident::with_quote('"', find_unused_name(&name_of(expr), &mut used, &avoided));
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
        }
    }
}

/// Returns the indices of the subqueries without an alias that would get the name of another
/// column. DataFusion gives `(SELECT x FROM t)` the name of its column, `x`.
fn find_queries_of_used_names(select: &Select) -> Vec<usize> {
    let lower = |name: &Ident| name.value.to_lowercase();
    let mut used: HashSet<String> = find_aliases(select);
    used.extend(select.projection.iter().filter_map(|item| match item {
        SelectItem::UnnamedExpr(Expr::Identifier(name)) => Some(lower(name)),
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => parts.last().map(lower),
        // The planner names the column of an expression after its text. Subqueries are compared below.
        SelectItem::UnnamedExpr(e) if !matches!(e, Expr::Subquery(_)) => {
            Some(e.to_string().to_lowercase())
        }
        _ => None,
    }));
    let queries = select.projection.iter().enumerate().filter_map(|(at, item)| match item {
        SelectItem::UnnamedExpr(Expr::Subquery(query)) => {
            Some((at, find_output_name(&query.body)?))
        }
        _ => None,
    });
    queries.filter(|(_, name)| used.contains(name)).map(|(at, _)| at).collect()
}

/// Returns the name, in lower case, of the only column of a SELECT; `None` if the SELECT has
/// several columns or `*`.
fn find_output_name(body: &SetExpr) -> Option<String> {
    match body {
        SetExpr::Select(select) => match select.projection.as_slice() {
            [SelectItem::ExprWithAlias { alias, .. }] => Some(alias.value.to_lowercase()),
            [SelectItem::UnnamedExpr(e)] if is_name(e) => Some(name_of(e).to_lowercase()),
            [SelectItem::UnnamedExpr(e)] => Some(e.to_string().to_lowercase()),
            _ => None,
        },
        SetExpr::Query(query) => find_output_name(&query.body),
        _ => None,
    }
}

/// Normalizes an expression, so that expressions are equal if they differ only in parts that
/// DataFusion omits from column names: removes casts and the types of literals such as
/// `DATE '2020-01-01'`, writes out omitted bounds of slices (`x[1:2]` for `x[:2]`), and replaces
/// aliases of functions with their names in DataFusion.
pub(in crate::sql) fn remove_casts(expr: &Expr) -> Expr {
    let mut bare = expr.clone();
    let _ = visit_expressions_mut(&mut bare, |e| {
        while let Some(inner) = take_inner_of_cast(e) {
            *e = inner;
        }
        complete_slices(e);
        if let Expr::Function(call) = e {
            take_first_name(call);
        }
        ControlFlow::<()>::Continue(())
    });
    bare
}

/// Replaces an alias of a function, such as `mean`, with the name of the function, `avg`, and
/// removes DISTINCT, ORDER BY and FILTER from such a call. Any other function name only becomes
/// lower case.
fn take_first_name(call: &mut Function) {
    let Some(name) = to_plain_name(&call.name) else { return };
    let first = FIRST_NAMES.get(&name);
    call.name = ObjectName::from(vec![Ident::new(first.unwrap_or(&name))]);
    if first.is_none() {
        return;
    }
    if let FunctionArguments::List(list) = &mut call.args {
        list.duplicate_treatment = None;
        list.clauses.clear();
    }
    call.filter = None;
    call.within_group.clear();
}

/// The names of DataFusion's functions by their aliases.
static FIRST_NAMES: LazyLock<HashMap<String, String>> = LazyLock::new(|| {
    let mut names = HashMap::new();
    let mut add = |name: &str, aliases: &[String]| {
        names.extend(aliases.iter().map(|alias| (alias.clone(), name.to_owned())));
    };
    let lists = all_default_nested_functions().into_iter();
    lists.chain(all_default_functions()).for_each(|f| add(f.name(), f.aliases()));
    all_default_aggregate_functions().iter().for_each(|f| add(f.name(), f.aliases()));
    // Serrate plans `len` and `length` of a list as `array_length`.
    names.extend(["len", "length"].map(|alias| (alias.to_owned(), "array_length".to_owned())));
    names
});

/// Returns the operand of a cast, or a column name in parentheses; `None` for any other expression.
fn take_inner_of_cast(e: &mut Expr) -> Option<Expr> {
    match e {
        Expr::Cast { expr, .. } => Some(std::mem::replace(expr.as_mut(), Expr::value(Value::Null))),
        Expr::TypedString(typed) => Some(Expr::Value(typed.value.clone())),
        Expr::Nested(inner) if is_name(inner) => Some(inner.as_ref().clone()),
        _ => None,
    }
}

pub(in crate::sql::statement) fn is_name(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
}

pub(in crate::sql::statement) fn name_of(expr: &Expr) -> String {
    match expr {
        Expr::Identifier(name) => name.value.clone(),
        Expr::CompoundIdentifier(parts) => {
            parts.last().map(|last| last.value.clone()).unwrap_or_default()
        }
        other => other.to_string(),
    }
}

/// Gives an alias to each column without an alias if an earlier column or an alias in the SELECT
/// already has its name.
pub(in crate::sql) fn name_columns(select: &mut Select, ordered: &HashSet<String>) {
    let mut avoided = ordered.clone();
    add_identifiers(select, &mut avoided);
    let mut used = find_aliases(select);
    for item in &mut select.projection {
        let SelectItem::UnnamedExpr(expr) = item else { continue };
        let name = name_of(expr);
        let other = find_unused_name(&name, &mut used, &avoided);
        if other != name {
            let alias = Ident::with_quote('"', other);
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
        }
    }
}
