//! Names computed result columns as in SQL, without the table names in their arguments.
//!
//! DataFusion names `sum(x)` after its plan, `sum(t.x)`, and a file in FROM by its path. A column
//! of a subquery also has such a name. So this file follows each result column to the expression
//! that defines it, and displays this expression as in SQL.

use std::collections::HashMap;
use std::sync::Arc;

use crate::array::list_depth;
use crate::functions::{
    COMPARISON, find_definition, find_loosest_operator, find_precedence, is_chain,
    is_list_concatenation, write_list_call, write_literal,
};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema};
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Cast, DdlStatement, Distinct, Expr, ExprSchemable, JoinType, Limit,
    LogicalPlan, LogicalPlanBuilder, Operator, Projection, Sort, TryCast,
};

use crate::sql::statement::planned_parts::list_column_names;

/// Renames the result columns of a plan to the expressions in the statement.
///
/// Names given with AS are kept. Two columns that would get the same name also show the names of
/// their tables.
pub(in crate::sql) fn set_headings(plan: LogicalPlan) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Copy(mut copy) => {
            copy.input = add_headings(copy.input)?;
            Ok(LogicalPlan::Copy(copy))
        }
        LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(mut table)) => {
            table.input = add_headings(table.input)?;
            Ok(LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(table)))
        }
        LogicalPlan::Ddl(DdlStatement::CreateView(mut view)) => {
            view.input = add_headings(view.input)?;
            Ok(LogicalPlan::Ddl(DdlStatement::CreateView(view)))
        }
        LogicalPlan::Projection(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Limit(_)
        | LogicalPlan::Distinct(_)
        | LogicalPlan::Union(_)
        | LogicalPlan::Aggregate(_)
        | LogicalPlan::SubqueryAlias(_)
        // INTERSECT and EXCEPT are planned as joins.
        | LogicalPlan::Join(_)
        | LogicalPlan::Filter(_) => Ok(Arc::unwrap_or_clone(add_headings(Arc::new(plan))?)),
        other => Ok(other),
    }
}

/// Whether a heading shows the name of the table in front of each column name.
#[derive(Clone, Copy, PartialEq)]
enum HeadingQualifiers {
    Omitted,
    /// Shown, because without the names of tables two columns would have the same heading.
    Named,
}

fn add_headings(plan: Arc<LogicalPlan>) -> Result<Arc<LogicalPlan>> {
    let old: Vec<String> = list_column_names(&plan);
    let mut new: Vec<String> = (0..old.len())
        .map(|at| find_column_heading(&plan, at, HeadingQualifiers::Omitted))
        .collect();
    for at in find_shared(&new) {
        new[at] = find_column_heading(&plan, at, HeadingQualifiers::Named);
    }
    // If two columns have the same name even with the names of tables, both keep DataFusion's
    // names.
    for at in find_shared(&new) {
        new[at].clone_from(&old[at]);
    }
    if new == old {
        return Ok(plan);
    }
    rename_columns(Arc::unwrap_or_clone(plan), &old, &new).map(Arc::new)
}

/// Returns the positions of the columns that share their name with another column.
fn find_shared(names: &[String]) -> Vec<usize> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for name in names {
        *counts.entry(name).or_default() += 1;
    }
    let shared = names.iter().enumerate().filter(|(_, name)| counts.get(name.as_str()) > Some(&1));
    shared.map(|(at, _)| at).collect()
}

/// Renames the columns of a plan from `old` to `new`. Changes the projection at the top of the plan
/// or directly below a limit or a sort. Above any other plan, adds a projection.
fn rename_columns(plan: LogicalPlan, old: &[String], new: &[String]) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Projection(projection) => {
            let columns = projection.expr.into_iter().zip(old.iter().zip(new));
            let columns = columns.map(|(expr, (old, new))| match old == new {
                true => expr,
                false => expr.unalias().alias(new),
            });
            Projection::try_new(columns.collect(), projection.input).map(LogicalPlan::Projection)
        }
        LogicalPlan::Limit(limit) => {
            let input = rename_columns(Arc::unwrap_or_clone(limit.input), old, new)?;
            Ok(LogicalPlan::Limit(Limit { input: Arc::new(input), ..limit }))
        }
        LogicalPlan::Sort(sort) if matches!(*sort.input, LogicalPlan::Projection(_)) => {
            let before = Arc::clone(sort.input.schema());
            let input = rename_columns(Arc::unwrap_or_clone(sort.input), old, new)?;
            let by = sort.expr.into_iter().map(|by| {
                let expr = by.expr.clone().transform(|e| match e {
                    Expr::Column(column) => Ok(match before.maybe_index_of_column(&column) {
                        Some(at) => Transformed::yes(Expr::Column(Column::from(
                            input.schema().qualified_field(at),
                        ))),
                        None => Transformed::no(Expr::Column(column)),
                    }),
                    other => Ok(Transformed::no(other)),
                })?;
                Ok(by.with_expr(expr.data))
            });
            let by = by.collect::<Result<Vec<_>>>()?;
            Ok(LogicalPlan::Sort(Sort { expr: by, input: Arc::new(input), fetch: sort.fetch }))
        }
        other => {
            let schema = Arc::clone(other.schema());
            let columns = schema.iter().zip(old.iter().zip(new)).map(|(field, (old, new))| {
                let column = Expr::Column(Column::from(field));
                if old == new { column } else { column.alias(new) }
            });
            LogicalPlanBuilder::from(other).project(columns.collect::<Vec<_>>())?.build()
        }
    }
}

/// Returns the expression that defines column `at` of an aggregation. Returns `None` for the
/// grouping id, a column between the keys of grouping sets and the aggregates, which no expression
/// defines.
fn find_grouped_expr(aggregate: &Aggregate, at: usize) -> Option<&Expr> {
    match aggregate.group_expr.as_slice() {
        [Expr::GroupingSet(sets)] => {
            let keys = sets.distinct_expr();
            match at.checked_sub(keys.len()) {
                None => keys.get(at).copied(),
                Some(at) => aggregate.aggr_expr.get(at.checked_sub(1)?),
            }
        }
        groups => groups.iter().chain(&aggregate.aggr_expr).nth(at),
    }
}

/// Returns the heading of column `at` of a plan: the expression that defines the column, or else
/// its name.
fn find_column_heading(plan: &LogicalPlan, at: usize, tables: HeadingQualifiers) -> String {
    let made = match plan {
        LogicalPlan::Projection(projection) => {
            projection.expr.get(at).map(|expr| format_expr(expr, &projection.input, tables))
        }
        LogicalPlan::Aggregate(aggregate) => {
            find_grouped_expr(aggregate, at).map(|expr| format_expr(expr, &aggregate.input, tables))
        }
        LogicalPlan::Window(window) => {
            let before = window.input.schema().fields().len();
            match at.checked_sub(before) {
                None => Some(find_column_heading(&window.input, at, tables)),
                Some(at) => {
                    window.window_expr.get(at).map(|e| format_expr(e, &window.input, tables))
                }
            }
        }
        LogicalPlan::Filter(filter) => Some(find_column_heading(&filter.input, at, tables)),
        LogicalPlan::Sort(sort) => Some(find_column_heading(&sort.input, at, tables)),
        LogicalPlan::Limit(limit) => Some(find_column_heading(&limit.input, at, tables)),
        LogicalPlan::SubqueryAlias(alias) => Some(find_column_heading(&alias.input, at, tables)),
        LogicalPlan::Distinct(Distinct::All(input)) => Some(find_column_heading(input, at, tables)),
        LogicalPlan::Union(union) => union.inputs.first().and_then(|input| {
            // A column of a union gets the heading of the first input's column only if both columns
            // have the same name.
            let own = plan.schema().field(at).name();
            (input.schema().field(at).name() == own).then(|| find_column_heading(input, at, tables))
        }),
        LogicalPlan::Join(join) => {
            let left = join.left.schema().fields().len();
            match join.join_type {
                JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => {
                    Some(match at.checked_sub(left) {
                        None => find_column_heading(&join.left, at, tables),
                        Some(at) => find_column_heading(&join.right, at, tables),
                    })
                }
                JoinType::LeftSemi | JoinType::LeftAnti => {
                    Some(find_column_heading(&join.left, at, tables))
                }
                _ => None,
            }
        }
        _ => None,
    };
    made.unwrap_or_else(|| plan.schema().field(at).name().clone())
}

fn format_expr(expr: &Expr, input: &LogicalPlan, tables: HeadingQualifiers) -> String {
    match expr {
        // DataFusion plans `count(*) FILTER (..)` as `count(1) FILTER (..)` with an alias. The
        // heading has `count(*)`.
        Expr::Alias(alias) if alias.name.starts_with("count(*)") => {
            let plain = find_displayed_expr((*alias.expr).clone(), input, tables);
            let name = plain.map(|e| e.schema_name().to_string());
            match name.as_deref().and_then(|name| name.strip_prefix("count(1)")) {
                Some(rest) => format!("count(*){rest}"),
                None => alias.name.clone(),
            }
        }
        Expr::Alias(alias) => format_alias(&alias.name, &alias.expr, input, tables)
            .unwrap_or_else(|| alias.name.clone()),
        Expr::Column(column) => match input.schema().maybe_index_of_column(column) {
            Some(at) => find_column_heading(input, at, tables),
            None => column.name.clone(),
        },
        other => {
            let plain = find_displayed_expr(other.clone(), input, tables);
            plain.map_or_else(|| other.schema_name().to_string(), |e| e.schema_name().to_string())
        }
    }
}

fn format_column(
    column: &Column,
    schema: &DFSchema,
    input: &LogicalPlan,
    tables: HeadingQualifiers,
) -> String {
    let name = match schema.maybe_index_of_column(column) {
        Some(at) => find_column_heading(input, at, tables),
        None => column.name.clone(),
    };
    match &column.relation {
        Some(table) if tables == HeadingQualifiers::Named && name == column.name => {
            format!("{table}.{name}")
        }
        _ => name,
    }
}

/// Rewrites an expression so that its `Display` shows columns and literals as in SQL. Returns
/// `None` if a rewrite fails.
fn find_displayed_expr(expr: Expr, input: &LogicalPlan, tables: HeadingQualifiers) -> Option<Expr> {
    let schema = input.schema();
    let plain = expr.transform_down(|e| {
        let e = match &e {
            Expr::HigherOrderFunction(map) => write_list_call(map).unwrap_or(e),
            _ => e,
        };
        if let Expr::ScalarFunction(call) = &e
            && let Some(name) = name_list_comparison(call, input, tables)
        {
            return Ok(Transformed::yes(make_text_column(name)));
        }
        Ok(match e {
            // The functions of these calls display their literal arguments as in SQL, so only the
            // arguments that are not literals are rewritten. In the call for `a + b - c`, the
            // operators are literal arguments.
            Expr::ScalarFunction(mut call) if is_chain(&call) || is_ours(&call) => {
                for operand in call.args.iter_mut().filter(|e| !matches!(e, Expr::Literal(..))) {
                    if let Some(plain) = find_displayed_expr(operand.clone(), input, tables) {
                        *operand = plain;
                    }
                }
                Transformed::new(Expr::ScalarFunction(call), true, TreeNodeRecursion::Jump)
            }
            Expr::Column(column) => {
                let name = format_column(&column, schema, input, tables);
                Transformed::yes(Expr::Column(Column::new_unqualified(name)))
            }
            // The `mean(x)` in `mean(x) + 1` is a call of `avg` with the alias `mean(t.x)`.
            Expr::Alias(alias) => match format_alias(&alias.name, &alias.expr, input, tables) {
                Some(name) => {
                    Transformed::new(make_text_column(name), true, TreeNodeRecursion::Jump)
                }
                None => Transformed::no(Expr::Alias(alias)),
            },
            Expr::OuterReferenceColumn(field, column) => {
                let plain = Column::new_unqualified(column.name);
                Transformed::yes(Expr::OuterReferenceColumn(field, plain))
            }
            // The literal in `1.5::DECIMAL(3, 1)` is planned as the string '1.5', which keeps its
            // digits.
            Expr::Cast(cast) if format_decimal_text(&cast).is_some() => {
                let digits = format_decimal_text(&cast).unwrap_or_default();
                Transformed::yes(Expr::Column(Column::new_unqualified(digits)))
            }
            // DataFusion would display the literal 1 as `Int64(1)`.
            Expr::Literal(value, _) => {
                Transformed::yes(Expr::Column(Column::new_unqualified(write_literal(&value))))
            }
            other => Transformed::no(other),
        })
    });
    let plain = plain.and_then(|plain| plain.data.transform_up(add_parentheses));
    plain.ok().map(|plain| plain.data)
}

/// If a call compares two lists of the same depth value by value, returns its heading with the name
/// of its function, such as `ragged_eq(a, b)`. The heading `a = b` would be wrong, because between
/// two lists of the same depth, `=` compares the whole lists. Returns `None` for other calls.
fn name_list_comparison(
    call: &ScalarFunction,
    input: &LogicalPlan,
    tables: HeadingQualifiers,
) -> Option<String> {
    let def = find_definition(&call.func)?;
    let [left, right] = call.args.as_slice() else { return None };
    if def.infix.and_then(find_precedence) != Some(COMPARISON) {
        return None;
    }
    let depth = |e: &Expr| e.get_type(input.schema().as_ref()).map_or(0, |t| list_depth(&t));
    if depth(left) == 0 || depth(left) != depth(right) {
        return None;
    }
    let [left, right] = [left, right].map(|operand| {
        let plain = find_displayed_expr(operand.clone(), input, tables);
        plain.as_ref().unwrap_or(operand).schema_name().to_string()
    });
    Some(format!("{}({left}, {right})", def.name))
}

/// If a cast converts a string of digits, `-` and `.` to a decimal, returns the string. Otherwise,
/// returns `None`.
fn format_decimal_text(cast: &Cast) -> Option<String> {
    let Expr::Literal(value, _) = cast.expr.as_ref() else { return None };
    let digits = value.try_as_str().flatten()?;
    let is_number = digits.bytes().all(|b| b.is_ascii_digit() || b"-.".contains(&b));
    (cast.field.data_type().is_decimal() && is_number).then(|| digits.to_owned())
}

/// Adds parentheses around operands that bind looser than their operator. DataFusion omits them in
/// names.
fn add_parentheses(mut expr: Expr) -> Result<Transformed<Expr>> {
    if let Some(name) = name_query_test(&expr) {
        return Ok(Transformed::yes(make_text_column(name)));
    }
    let mut changed = false;
    let mut enclose = |operand: &mut Expr, outer: u8| {
        if find_expr_precedence(operand).is_some_and(|own| own < outer) {
            *operand = make_text_column(format!("({})", operand.schema_name()));
            changed = true;
        }
    };
    let above_comparison = COMPARISON.saturating_add(1);
    match &mut expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let own = find_operator_binding(*op);
            enclose(left, own);
            // A right operand with the same operator needs no parentheses: it comes from balancing
            // a long `a AND b AND c`.
            let chains = matches!(op, Operator::And | Operator::Or | Operator::StringConcat);
            enclose(right, if chains { own } else { own.saturating_add(1) });
            // DataFusion would display the operator as BIT_XOR.
            if *op == Operator::BitwiseXor {
                let name = format!("{} ^ {}", left.schema_name(), right.schema_name());
                return Ok(Transformed::yes(make_text_column(name)));
            }
        }
        Expr::Between(between) => {
            for part in [&mut between.expr, &mut between.low, &mut between.high] {
                enclose(part, above_comparison);
            }
        }
        Expr::Like(like) | Expr::SimilarTo(like) => {
            enclose(&mut like.expr, above_comparison);
            enclose(&mut like.pattern, above_comparison);
        }
        Expr::InList(list) => {
            enclose(&mut list.expr, above_comparison);
            list.list =
                vec![make_text_column(format!("({})", display_names(&list.list).join(", ")))];
            changed = true;
        }
        Expr::IsNull(of)
        | Expr::IsNotNull(of)
        | Expr::IsTrue(of)
        | Expr::IsNotTrue(of)
        | Expr::IsFalse(of)
        | Expr::IsNotFalse(of)
        | Expr::IsUnknown(of)
        | Expr::IsNotUnknown(of) => enclose(of, above_comparison),
        Expr::Not(of) => enclose(of, NOT),
        Expr::Negative(of) => {
            enclose(of, u8::MAX);
            return Ok(Transformed::yes(make_text_column(name_negation(of))));
        }
        Expr::ScalarFunction(call) if is_list_concatenation(&call.func) => {
            for operand in &mut call.args {
                enclose(operand, find_operator_binding(Operator::StringConcat));
            }
            return Ok(Transformed::yes(make_text_column(display_names(&call.args).join(" || "))));
        }
        Expr::ScalarFunction(call) => {
            if let Some(name) = name_syntax_call(call) {
                return Ok(Transformed::yes(make_text_column(name)));
            }
        }
        Expr::AggregateFunction(call) => {
            let keys = call.params.order_by.iter_mut().map(|key| &mut key.expr);
            name_calls(keys.chain(call.params.filter.as_deref_mut()))?;
            changed = true;
        }
        Expr::WindowFunction(call) => {
            let keys = call.params.order_by.iter_mut().map(|key| &mut key.expr);
            name_calls(keys.chain(call.params.filter.as_deref_mut()))?;
            changed = true;
        }
        _ => {}
    }
    Ok(Transformed::new_transformed(expr, changed))
}

/// Returns the name of a call that the statement does not write as a call, such as `[a, b]`.
fn name_syntax_call(call: &ScalarFunction) -> Option<String> {
    match call.name() {
        "array_slice" => slice_name(&call.args),
        // `sql::statement::names::cast_arguments` has added this call, so the heading omits it.
        "coalesce" if call.args.len() == 1 => display_names(&call.args).pop(),
        "make_array" => Some(format!("[{}]", display_names(&call.args).join(", "))),
        _ => None,
    }
}

/// Returns the name of a negation, whose operand has its parentheses.
fn name_negation(operand: &Expr) -> String {
    let operand = operand.schema_name().to_string();
    if operand.starts_with('-') { format!("-({operand})") } else { format!("-{operand}") }
}

/// Replaces each call in `exprs`, the sort keys or the FILTER condition of an aggregate, with a
/// column whose name is the heading of the call. DataFusion names an aggregate with the `Display`
/// of `exprs`, which shows the operator in `x > 1` as `ragged_gt(x, Int64(1))`.
fn name_calls<'a>(exprs: impl Iterator<Item = &'a mut Expr>) -> Result<()> {
    for expr in exprs {
        let named = std::mem::take(expr).transform_down(|e| {
            Ok(match e {
                Expr::ScalarFunction(_) | Expr::HigherOrderFunction(_) => {
                    let name = make_text_column(e.schema_name().to_string());
                    Transformed::new(name, true, TreeNodeRecursion::Jump)
                }
                other => Transformed::no(other),
            })
        })?;
        *expr = named.data;
    }
    Ok(())
}

fn display_names(exprs: &[Expr]) -> Vec<String> {
    exprs.iter().map(|e| e.schema_name().to_string()).collect()
}

fn make_text_column(name: String) -> Expr {
    Expr::Column(Column::new_unqualified(name))
}

/// Returns the heading `x[low:high]` of a call of `array_slice`, without the bounds and step that
/// planning has added. Returns `None` for a step other than 1, and if `x` would need parentheses.
fn slice_name(args: &[Expr]) -> Option<String> {
    let names = display_names(args);
    let [list, low, high, step] = names.as_slice() else { return None };
    if step != "1" || find_expr_precedence(&args[0]).is_some() {
        return None;
    }
    let low = if low == "1" { "" } else { low };
    let high = if high == "-1" { "" } else { high };
    Some(format!("{list}[{low}:{high}]"))
}

const NOT: u8 = 3;

fn find_operator_binding(op: Operator) -> u8 {
    find_precedence(&op.to_string()).unwrap_or(COMPARISON)
}

/// Returns the name of IN or EXISTS with a subquery, which DataFusion displays as `IN` or `EXISTS`.
/// The plan does not have the text of the subquery.
fn name_query_test(expr: &Expr) -> Option<String> {
    match expr {
        Expr::InSubquery(test) => {
            let binds = find_expr_precedence(&test.expr).is_none_or(|own| own > COMPARISON);
            let operand = test.expr.schema_name();
            let operand = if binds { operand.to_string() } else { format!("({operand})") };
            let word = if test.negated { "NOT IN" } else { "IN" };
            Some(format!("{operand} {word} (SELECT ..)"))
        }
        Expr::Exists(test) => {
            Some(format!("{}EXISTS (SELECT ..)", if test.negated { "NOT " } else { "" }))
        }
        _ => None,
    }
}

/// Returns the precedence of the loosest operator outside parentheses in the displayed expression,
/// or `None` if there is no such operator.
fn find_expr_precedence(expr: &Expr) -> Option<u8> {
    match expr {
        Expr::BinaryExpr(binary) => Some(find_operator_binding(binary.op)),
        Expr::Not(_) => Some(NOT),
        Expr::Between(_)
        | Expr::Like(_)
        | Expr::SimilarTo(_)
        | Expr::InList(_)
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsTrue(_)
        | Expr::IsNotTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsNotFalse(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotUnknown(_) => Some(COMPARISON),
        // DataFusion displays a cast like its operand, so the precedence is that of the operand.
        Expr::Cast(Cast { expr, .. }) | Expr::TryCast(TryCast { expr, .. }) => {
            find_expr_precedence(expr)
        }
        // A function of Serrate may be displayed as an operator, and a column as its defining
        // expression, so the operators are read from the displayed text.
        Expr::Column(_) | Expr::ScalarFunction(_) => {
            find_loosest_operator(&expr.schema_name().to_string())
        }
        _ => None,
    }
}

/// Whether a call is of a function of Serrate. Such a function displays its calls itself.
fn is_ours(call: &ScalarFunction) -> bool {
    find_definition(&call.func).is_some()
}

/// Returns the heading of a call that names its function by an alias, such as `mean(x)` for a call
/// of `avg`. Returns `None` if `alias` is not the text of such a call.
fn format_alias(
    alias: &str,
    expr: &Expr,
    input: &LogicalPlan,
    tables: HeadingQualifiers,
) -> Option<String> {
    let (name, _) = alias.split_once('(')?;
    let (made, below) = match expr {
        // The column refers to an aggregate or window function in a plan node below.
        Expr::Column(column) => find_defining_expr(column, input)?,
        other => (other, input),
    };
    let args = match made {
        Expr::ScalarFunction(call) => &call.args,
        Expr::HigherOrderFunction(call) => &call.args,
        Expr::AggregateFunction(call) => &call.params.args,
        Expr::WindowFunction(call) => &call.params.args,
        _ => return None,
    };
    let listed = |args: &[Expr]| args.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    if alias != format!("{name}({})", listed(args)) {
        return None;
    }
    let args: Option<Vec<Expr>> =
        args.iter().map(|e| find_displayed_expr(e.clone(), below, tables)).collect();
    Some(format!("{name}({})", display_names(&args?).join(",")))
}

/// Returns the aggregate or window function that defines a column, and the input of the node that
/// computes the function. The node may be below filters and windows. Returns `None` for any other
/// column.
fn find_defining_expr<'a>(
    column: &Column,
    plan: &'a LogicalPlan,
) -> Option<(&'a Expr, &'a LogicalPlan)> {
    let at = plan.schema().maybe_index_of_column(column)?;
    match plan {
        LogicalPlan::Aggregate(aggregate) => {
            let groups = aggregate.group_expr_len().ok()?;
            let expr = aggregate.aggr_expr.get(at.checked_sub(groups)?)?;
            Some((expr, aggregate.input.as_ref()))
        }
        LogicalPlan::Window(window) => {
            let before = window.input.schema().fields().len();
            match at.checked_sub(before) {
                Some(at) => window.window_expr.get(at).map(|e| (e, window.input.as_ref())),
                None => find_defining_expr(column, &window.input),
            }
        }
        LogicalPlan::Filter(filter) => find_defining_expr(column, &filter.input),
        _ => None,
    }
}
