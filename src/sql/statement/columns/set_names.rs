//! Renames columns that have the same name in a SELECT or in the inputs of a set operation.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use datafusion::functions::all_default_functions;
use datafusion::functions_aggregate::all_default_aggregate_functions;
use datafusion::functions_nested::all_default_nested_functions;
use datafusion::logical_expr::sqlparser::ast::{
    Expr, Function, FunctionArguments, Ident, ObjectName, Select, SelectItem, SetExpr,
    SetQuantifier, Value, Visit,
};

use crate::sql::base::syntax::{
    for_each_expr, for_each_expr_mut, has_expr, has_query, name_item, to_plain_name,
};
use crate::sql::statement::expressions::expr_rewrites::complete_slices;

/// Maximum number of bytes in the text of an expression from which casts are removed. The removal
/// copies the expression, and copying a very deep expression overflows the stack.
const LONGEST_NAME: usize = 1_000;

/// Renames the second of two columns with the same name within an input of UNION, EXCEPT or
/// INTERSECT.
///
/// Set operations match columns by position, but DataFusion finds columns by name, and would
/// confuse two with the same name. This workaround is obsolete once the test
/// `stock_set_operations_by_name_still_fail` fails.
///
/// `ordered` are the identifiers in ORDER BY of the query, which the new names avoid.
pub(in crate::sql) fn make_names_unique(body: &mut SetExpr, ordered: &HashSet<String>) {
    if let SetExpr::SetOperation { left, right, .. } = body {
        name_input(left, ordered);
        name_input(right, ordered);
    }
}

/// Gives aliases to the computed columns of the right input of UNION, EXCEPT or INTERSECT, if it
/// also has other columns.
///
/// DataFusion would give the computed columns the names of the left columns, but another column may
/// have such a name: in `SELECT a, b FROM t UNION ALL SELECT b, 1 FROM t`, the column
/// `1` would be a second `b`. The names of the right input have no other effect, except with BY
/// NAME. This workaround is obsolete once the test `stock_computed_columns_of_unions_still_clash`
/// fails.
pub(in crate::sql) fn name_right_columns(body: &mut SetExpr) {
    let mut bodies = vec![body];
    while let Some(body) = bodies.pop() {
        let SetExpr::SetOperation { left, right, set_quantifier, .. } = body else { continue };
        if !is_by_name(*set_quantifier)
            && let Some(select) = find_first_select(right)
        {
            name_computed(select);
        }
        bodies.extend([left.as_mut(), right.as_mut()]);
    }
}

fn is_by_name(quantifier: SetQuantifier) -> bool {
    matches!(
        quantifier,
        SetQuantifier::ByName | SetQuantifier::AllByName | SetQuantifier::DistinctByName
    )
}

/// Returns the SELECT that gives a query its column names. Returns `None` if another clause of the
/// query may refer to a column by its name.
fn find_first_select(body: &mut SetExpr) -> Option<&mut Select> {
    match body {
        SetExpr::Select(select) => Some(select),
        SetExpr::Query(query) if query.pipe_operators.is_empty() => {
            let body = query.body.as_mut();
            let is_plain = matches!(body, SetExpr::Select(select) if select.distinct.is_none());
            match query.order_by.is_some() && !is_plain {
                true => None,
                false => find_first_select(body),
            }
        }
        SetExpr::SetOperation { left, set_quantifier, .. } if !is_by_name(*set_quantifier) => {
            find_first_select(left)
        }
        _ => None,
    }
}

fn name_computed(select: &mut Select) {
    let is_computed = |item: &SelectItem| matches!(item, SelectItem::UnnamedExpr(e) if !is_name(e) && !is_expanded(e));
    let computed = select.projection.iter().filter(|item| is_computed(item)).count();
    if computed == 0 || computed == select.projection.len() {
        return;
    }
    let mut avoided = HashSet::new();
    add_identifiers(select, &mut avoided);
    let mut used = find_aliases(select);
    for (item, number) in select.projection.iter_mut().zip(1usize..) {
        if is_computed(item) {
            name_item(item, find_unused_name(&format!("column {number}"), &mut used, &avoided));
        }
    }
}

/// Whether an expression may become several columns, as `COLUMNS(*)` and `unnest` of a struct do.
pub(in crate::sql::statement) fn is_expanded(expr: &Expr) -> bool {
    has_expr(expr, |e| match e {
        Expr::Function(call) => to_plain_name(&call.name)
            .is_some_and(|name| ["columns", "unnest", "unnest_outer"].contains(&name.as_str())),
        _ => false,
    })
}

fn name_input(input: &mut SetExpr, ordered: &HashSet<String>) {
    match input {
        SetExpr::Select(select) => name_columns(select, ordered),
        SetExpr::Query(query) => name_input(query.body.as_mut(), ordered),
        // A nested set operation stays unchanged here. The visitor renames its inputs when it
        // reaches them.
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
    for_each_expr(node, |e| match e {
        Expr::Identifier(name) => {
            names.insert(name.value.to_lowercase());
        }
        Expr::CompoundIdentifier(parts) => {
            names.extend(parts.iter().map(|part| part.value.to_lowercase()));
        }
        _ => {}
    });
}

/// Gives aliases to columns of a SELECT to which DataFusion would give the same name, which is an
/// error: subqueries (`<subquery>`), and expressions that differ only in casts, omitted bounds of
/// slices and aliases of functions (the second becomes `x_1`).
///
/// `ordered` are the identifiers in ORDER BY of the query, which the aliases avoid.
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
        // The planner treats `//` and `/` as the same operator, so `a // b` and `a / b` get the
        // same name.
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
            used.insert(find_expr_name(expr).to_lowercase());
        }
    }
    for (item, repeated) in select.projection.iter_mut().zip(repeated) {
        let named = repeated || several_queries && is_query(item);
        let SelectItem::UnnamedExpr(expr) = item else { continue };
        if named {
            let name = find_unused_name(&find_expr_name(expr), &mut used, &avoided);
            name_item(item, name);
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
        // The planner names the column of an expression after its text. Subqueries are compared
        // below.
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

/// Returns the lower-case name of the only column of a SELECT. Returns `None` if the SELECT has
/// several columns or `*`, and for VALUES and set operations.
fn find_output_name(body: &SetExpr) -> Option<String> {
    match body {
        SetExpr::Select(select) => match select.projection.as_slice() {
            [SelectItem::ExprWithAlias { alias, .. }] => Some(alias.value.to_lowercase()),
            [SelectItem::UnnamedExpr(e)] if is_name(e) => Some(find_expr_name(e).to_lowercase()),
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
    for_each_expr_mut(&mut bare, |e| {
        while let Some(inner) = take_inner_of_cast(e) {
            *e = inner;
        }
        complete_slices(e);
        if let Expr::Function(call) = e {
            take_first_name(call);
        }
    });
    bare
}

/// Replaces an alias of a function, such as `mean`, with the name of the function, `avg`, and
/// removes DISTINCT, ORDER BY and FILTER from such a call, because DataFusion names the call
/// `mean(x)`, without these clauses. Any other function name only becomes lower case.
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

/// Returns the operand of a cast, or the column in `(column)`; `None` for any other expression.
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

pub(in crate::sql::statement) fn find_expr_name(expr: &Expr) -> String {
    match expr {
        Expr::Identifier(name) => name.value.clone(),
        Expr::CompoundIdentifier(parts) => {
            parts.last().map(|last| last.value.clone()).unwrap_or_default()
        }
        other => other.to_string(),
    }
}

/// Gives an alias to each column that has none and whose name an earlier column or an alias already
/// has.
pub(in crate::sql) fn name_columns(select: &mut Select, ordered: &HashSet<String>) {
    let mut avoided = ordered.clone();
    add_identifiers(select, &mut avoided);
    let mut used = find_aliases(select);
    for item in &mut select.projection {
        let SelectItem::UnnamedExpr(expr) = item else { continue };
        let name = find_expr_name(expr);
        let other = find_unused_name(&name, &mut used, &avoided);
        if other != name {
            name_item(item, other);
        }
    }
}
