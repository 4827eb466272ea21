//! Replaces references to named windows with their definitions.
//!
//! DataFusion resolves named windows only in the SELECT list. In ORDER BY and QUALIFY, it plans
//! `sum(x) OVER w` as an aggregate, and in `OVER (w ROWS ..)` it ignores the definition of `w`.

use std::ops::ControlFlow;

use datafusion::common::plan_datafusion_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::sqlparser::ast::{
    BinaryOperator, DuplicateTreatment, Expr, Function, FunctionArgumentClause, FunctionArguments,
    Ident, NamedWindowDefinition, NamedWindowExpr, Query, Select, SelectItem, SetExpr, Value,
    Visit, VisitMut, WindowFrame, WindowFrameBound, WindowFrameUnits, WindowSpec, WindowType,
    visit_expressions, visit_expressions_mut,
};

use crate::sql::base::syntax::{as_result, has_expr, has_query, name_item, to_plain_name};
use crate::sql::statement::expressions::intervals::multiply_interval;
use crate::sql::statement::folding::is_same_name;

/// Replaces each reference to a named window of the query's SELECT with the definition of the
/// window.
///
/// The visitor rewrites inner queries first, so a name refers to the innermost SELECT that defines
/// it.
///
/// # Errors
/// If a window is not defined, or a reference overrides a part of its definition.
pub(in crate::sql) fn write_out_windows(query: &mut Query) -> Result<()> {
    let SetExpr::Select(select) = query.body.as_mut() else { return Ok(()) };
    qualify_by_window(select);
    if select.named_window.is_empty() {
        return Ok(());
    }
    let windows = define_windows(&select.named_window)?;
    as_result(write_out(&mut select.projection, &windows))?;
    as_result(write_out(&mut select.qualify, &windows))?;
    as_result(write_out(&mut select.distinct, &windows))?;
    as_result(write_out(&mut query.order_by, &windows))
}

/// Functions whose result depends on the order of the window, even if the frame of the window is
/// the whole partition.
const ORDERED: [&str; 9] = [
    "cume_dist",
    "dense_rank",
    "fill",
    "lag",
    "lead",
    "ntile",
    "percent_rank",
    "rank",
    "row_number",
];

/// Moves ORDER BY from the arguments of an aggregate to its window if the window is the whole
/// partition: `array_agg(x ORDER BY y) OVER (PARTITION BY k)` becomes `array_agg(x) OVER (PARTITION
/// BY k ORDER BY y ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)`.
///
/// DataFusion refuses ORDER BY in such calls. This workaround is obsolete once the test
/// `stock_windows_still_have_no_ordered_arguments` fails.
pub(in crate::sql) fn move_order_to_window(expr: &mut Expr) {
    let Expr::Function(call) = expr else { return };
    if !has_movable_order(call) {
        return;
    }
    let (FunctionArguments::List(list), Some(WindowType::WindowSpec(window))) =
        (&mut call.args, &mut call.over)
    else {
        return;
    };
    list.clauses.retain_mut(|clause| match clause {
        FunctionArgumentClause::OrderBy(keys) => {
            window.order_by.append(keys);
            false
        }
        _ => true,
    });
    window.window_frame = Some(WindowFrame {
        units: WindowFrameUnits::Rows,
        start_bound: WindowFrameBound::Preceding(None),
        end_bound: Some(WindowFrameBound::Following(None)),
    });
}

fn has_movable_order(call: &Function) -> bool {
    let (FunctionArguments::List(list), Some(WindowType::WindowSpec(window))) =
        (&call.args, &call.over)
    else {
        return false;
    };
    let is_whole =
        window.window_name.is_none() && window.order_by.is_empty() && window.window_frame.is_none();
    is_whole
        && list.duplicate_treatment != Some(DuplicateTreatment::Distinct)
        && has_order(call)
        && to_plain_name(&call.name).is_some_and(|name| !ORDERED.contains(&name.as_str()))
}

/// Whether the arguments of a call have ORDER BY, as in `array_agg(x ORDER BY y)`.
pub(in crate::sql) fn has_order(call: &Function) -> bool {
    matches!(&call.args, FunctionArguments::List(list)
        if list.clauses.iter().any(|clause| matches!(clause, FunctionArgumentClause::OrderBy(_))))
}

/// If [`move_order_to_window`] changes a result column, gives the column its current text as alias,
/// so that it keeps its name.
pub(in crate::sql) fn name_ordered_window(item: &mut SelectItem) {
    let SelectItem::UnnamedExpr(expr) = item else { return };
    let is_movable = |e: &Expr| matches!(e, Expr::Function(call) if has_movable_order(call));
    if has_expr(expr, is_movable) && !has_query(expr) {
        let name = expr.to_string();
        name_item(item, name);
    }
}

/// Replaces a product in the frame of a call, as in `RANGE 2 * INTERVAL '1 day' PRECEDING`, with an
/// interval.
pub(in crate::sql) fn multiply_bounds_of(call: &mut Function) {
    if let Some(WindowType::WindowSpec(window)) = &mut call.over {
        multiply_bounds(window);
    }
}

/// Replaces products in a frame, such as `2 * INTERVAL '1 day'`, with intervals, because DataFusion
/// accepts only literals in frames.
fn multiply_bounds(window: &mut WindowSpec) {
    let Some(frame) = &mut window.window_frame else { return };
    for bound in std::iter::once(&mut frame.start_bound).chain(&mut frame.end_bound) {
        if let WindowFrameBound::Preceding(Some(offset)) | WindowFrameBound::Following(Some(offset)) =
            bound
            && let Some(product) = multiply_interval(offset)
        {
            **offset = product;
        }
    }
}

/// If QUALIFY has no window function but SELECT has one, as in
/// `SELECT rank() OVER (..) .. QUALIFY x = 1`, adds a condition that uses this function and is
/// always true. DataFusion requires that QUALIFY uses a window function or the alias of one.
fn qualify_by_window(select: &mut Select) {
    let Some(condition) = &mut select.qualify else { return };
    if find_call(condition).is_some() {
        return;
    }
    let Some(window) = select.projection.iter().find_map(find_call) else { return };
    let nested = |e: Expr| Box::new(Expr::Nested(Box::new(e)));
    let either = Expr::BinaryOp {
        left: Box::new(Expr::IsNull(Box::new(window.clone()))),
        op: BinaryOperator::Or,
        right: Box::new(Expr::IsNotNull(Box::new(window))),
    };
    let written = std::mem::replace(condition, Expr::value(Value::Null));
    *condition =
        Expr::BinaryOp { left: nested(written), op: BinaryOperator::And, right: nested(either) };
}

/// Returns the first call with OVER in `part`, such as an item of SELECT, or `None` if `part` has
/// no such call.
fn find_call<V: Visit>(part: &V) -> Option<Expr> {
    let found = visit_expressions(part, |e| match e {
        Expr::Function(call) if call.over.is_some() => ControlFlow::Break(e.clone()),
        _ => ControlFlow::Continue(()),
    });
    found.break_value()
}

type NamedWindows = Vec<(Ident, WindowSpec)>;

/// Returns the definitions of a WINDOW clause. In `WINDOW w AS (PARTITION BY k), v AS (w ORDER BY
/// x)`, the returned definition of `v` also has the PARTITION BY of `w`.
fn define_windows(clause: &[NamedWindowDefinition]) -> Result<NamedWindows> {
    let mut windows: NamedWindows = Vec::with_capacity(clause.len());
    for NamedWindowDefinition(name, window) in clause {
        let mut spec = match window {
            NamedWindowExpr::NamedWindow(other) => find_window(&windows, other)?.clone(),
            NamedWindowExpr::WindowSpec(spec) => extend_window(spec.clone(), &windows)?,
        };
        multiply_bounds(&mut spec);
        windows.push((name.clone(), spec));
    }
    Ok(windows)
}

fn find_window<'a>(windows: &'a NamedWindows, name: &Ident) -> Result<&'a WindowSpec> {
    let known = windows.iter().find(|(window, _)| is_same_name(window, name));
    known.map(|(_, spec)| spec).ok_or_else(|| {
        let name = &name.value;
        plan_datafusion_err!(
            "the window {name} is not defined before it is used; add {name} AS (..) to the WINDOW clause, before the windows that extend it"
        )
    })
}

/// Combines a window definition such as `(w ROWS ..)` with the named window `w` that it extends.
fn extend_window(mut spec: WindowSpec, windows: &NamedWindows) -> Result<WindowSpec> {
    let Some(name) = spec.window_name.take() else { return Ok(spec) };
    let base = find_window(windows, &name)?;
    let twice = match () {
        () if !spec.partition_by.is_empty() => Some("PARTITION BY"),
        () if !spec.order_by.is_empty() && !base.order_by.is_empty() => Some("ORDER BY"),
        () if base.window_frame.is_some() => Some("a frame"),
        () => None,
    };
    if let Some(twice) = twice {
        return Err(plan_datafusion_err!(
            "OVER ({name} ..) cannot extend the window {name}, because {twice} conflicts with its definition; write the whole window in OVER (..)"
        ));
    }
    spec.partition_by = base.partition_by.clone();
    if spec.order_by.is_empty() {
        spec.order_by = base.order_by.clone();
    }
    Ok(spec)
}

fn write_out<V: VisitMut>(place: &mut V, windows: &NamedWindows) -> ControlFlow<DataFusionError> {
    visit_expressions_mut(place, |expr| {
        let Expr::Function(call) = expr else { return ControlFlow::Continue(()) };
        let spec = match call.over.take() {
            Some(WindowType::NamedWindow(name)) => find_window(windows, &name).cloned(),
            Some(WindowType::WindowSpec(spec)) => extend_window(spec, windows),
            None => return ControlFlow::Continue(()),
        };
        match spec {
            Ok(spec) => {
                call.over = Some(WindowType::WindowSpec(spec));
                ControlFlow::Continue(())
            }
            Err(e) => ControlFlow::Break(e),
        }
    })
}
