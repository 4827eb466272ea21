//! Whether the evaluation of an expression can fail for some values.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::FieldRef;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{Expr, ExprSchemable, ReturnFieldArgs};

use super::def::FailureCase;
use super::harmless::{cast_cannot_fail, is_harmless_call, operator_cannot_fail, read_literal};
use super::stock_facts::{StockFact, has_fact};
use super::{find_definition, is_ours};
use crate::array::list_depth;

/// Whether an expression can be evaluated for every row of a schema without an error. A rewrite may
/// then evaluate it for rows that the query skips.
///
/// True for columns, literals, operators and casts that accept all values, and functions of Serrate
/// and DataFusion that cannot fail. Also true for subqueries, although they may fail: a subquery
/// runs once, whatever rows the expression is evaluated for.
pub(crate) fn cannot_fail(e: &Expr, schema: &DFSchema) -> Result<bool> {
    KnownTypes { schema, types: HashMap::new(), shapes: HashMap::new() }.cannot_fail(e)
}

fn find_literal_scalar(e: &Expr) -> Option<&ScalarValue> {
    match e {
        Expr::Literal(value, _) => Some(value),
        _ => None,
    }
}

/// Caches, for each subexpression, its type and its shape: the column whose lists have the same
/// lengths as the lists of the subexpression, or `None` if no such column is known. An operator on
/// two lists of the same shape cannot fail because of unequal lengths. Without the cache, the time
/// to check an expression would be cubic in the number of nested operators.
struct KnownTypes<'a> {
    schema: &'a DFSchema,
    types: HashMap<*const Expr, FieldRef>,
    shapes: HashMap<*const Expr, Option<&'a Column>>,
}

impl<'a> KnownTypes<'a> {
    fn cannot_fail(&mut self, e: &'a Expr) -> Result<bool> {
        let schema = self.schema;
        let alone = match e {
            Expr::Column(_)
            | Expr::Literal(..)
            | Expr::OuterReferenceColumn(..)
            | Expr::LambdaVariable(_)
            | Expr::Placeholder(_)
            | Expr::Alias(_)
            | Expr::Not(_)
            | Expr::IsNull(_)
            | Expr::IsNotNull(_)
            | Expr::IsTrue(_)
            | Expr::IsFalse(_)
            | Expr::IsUnknown(_)
            | Expr::IsNotTrue(_)
            | Expr::IsNotFalse(_)
            | Expr::IsNotUnknown(_)
            | Expr::Between(_)
            | Expr::InList(_)
            | Expr::Case(_)
            | Expr::TryCast(_)
            | Expr::ScalarSubquery(_)
            | Expr::Exists(_)
            | Expr::InSubquery(_) => true,
            Expr::BinaryExpr(operation) => operator_cannot_fail(operation, schema)?,
            // The negative of the least integer does not fit its type.
            Expr::Negative(of) => of.get_type(schema)?.is_floating(),
            Expr::Like(like) => read_literal(&like.pattern).is_some(),
            Expr::Cast(cast) => {
                cast_cannot_fail(self.find_field(&cast.expr)?.data_type(), cast.field.data_type())
            }
            Expr::ScalarFunction(call) => is_fixed_slice(call) || self.call_cannot_fail(call)?,
            _ => false,
        };
        let mut whole = alone;
        if alone {
            e.apply_children(|child| {
                whole = self.cannot_fail(child)?;
                Ok(match whole {
                    true => TreeNodeRecursion::Continue,
                    false => TreeNodeRecursion::Stop,
                })
            })?;
        }
        Ok(whole)
    }

    fn call_cannot_fail(&mut self, call: &'a ScalarFunction) -> Result<bool> {
        let Some(def) = find_definition(&call.func) else {
            let literals = call.args.iter().map(read_literal).collect::<Vec<_>>();
            return Ok(!is_ours(&call.func) && is_harmless_call(call.name(), &literals));
        };
        let types = call.args.iter().map(|arg| Ok(self.find_field(arg)?.data_type().clone()));
        let types = types.collect::<Result<Vec<_>>>()?;
        let shapes: Vec<Option<&Column>> =
            call.args.iter().map(|arg| self.find_shape(arg)).collect();
        Ok(!def.can_fail(&types, &shapes, has_written_arguments(call)))
    }

    fn find_field(&mut self, e: &'a Expr) -> Result<FieldRef> {
        if let Some(known) = self.types.get(&std::ptr::from_ref(e)) {
            return Ok(Arc::clone(known));
        }
        let field = match e {
            Expr::ScalarFunction(call) if find_definition(&call.func).is_some() => {
                let fields = call.args.iter().map(|arg| self.find_field(arg));
                let fields = fields.collect::<Result<Vec<_>>>()?;
                let arg_fields = fields_with_udf(&fields, call.func.as_ref())?;
                let scalar_arguments: Vec<Option<&ScalarValue>> =
                    call.args.iter().map(find_literal_scalar).collect();
                let args = ReturnFieldArgs {
                    arg_fields: &arg_fields,
                    scalar_arguments: &scalar_arguments,
                };
                call.func.return_field_from_args(args)?
            }
            e => e.to_field(self.schema)?.1,
        };
        self.types.insert(std::ptr::from_ref(e), Arc::clone(&field));
        Ok(field)
    }

    fn find_shape(&mut self, e: &'a Expr) -> Option<&'a Column> {
        match e {
            Expr::Column(column) => Some(column),
            Expr::Alias(alias) => self.find_shape(&alias.expr),
            Expr::ScalarFunction(call) => {
                if let Some(known) = self.shapes.get(&std::ptr::from_ref(e)) {
                    return *known;
                }
                let shape = self.find_shape_of_call(call);
                self.shapes.insert(std::ptr::from_ref(e), shape);
                shape
            }
            _ => None,
        }
    }

    fn find_shape_of_call(&mut self, call: &'a ScalarFunction) -> Option<&'a Column> {
        if !find_definition(&call.func)?.keeps_lengths() {
            return None;
        }
        let mut shape = None;
        for arg in &call.args {
            if !self.find_field(arg).is_ok_and(|field| list_depth(field.data_type()) > 0) {
                continue;
            }
            let own = self.find_shape(arg)?;
            if shape.is_some_and(|shape| shape != own) {
                return None;
            }
            shape = Some(own);
        }
        shape
    }
}

/// Whether a call never fails, whatever its arguments contain. Only calls of Serrate's functions,
/// of `array_length` and of `cardinality`, and [slices with constant bounds](is_fixed_slice) can
/// give `true`.
pub(crate) fn never_fails(call: &ScalarFunction) -> bool {
    match find_definition(&call.func) {
        Some(def) => match def.fails {
            FailureCase::Never => true,
            FailureCase::ComputedArguments => has_written_arguments(call),
            _ => false,
        },
        None => {
            is_fixed_slice(call)
                || (call.args.len() == 1 && has_fact(call.name(), StockFact::ReadsLengths))
        }
    }
}

fn has_written_arguments(call: &ScalarFunction) -> bool {
    call.args.iter().skip(1).all(|arg| matches!(arg, Expr::Literal(..)))
}

/// Whether a call is DataFusion's `x[a:b]`, `x[a:b:s]` or `x[a]` with integer literals and no step
/// of 0.
pub(crate) fn is_fixed_slice(call: &ScalarFunction) -> bool {
    let number = |e: &Expr| match e {
        Expr::Literal(value, _) => value.data_type().is_integer() && !value.is_null(),
        _ => false,
    };
    let zero = |e: &Expr| match e {
        Expr::Literal(value, _) => {
            value.cast_to(&arrow::datatypes::DataType::Int64).is_ok_and(|v| v == 0i64.into())
        }
        _ => true,
    };
    match (call.name(), call.args.as_slice()) {
        ("array_slice", [_, bounds @ .., step]) if bounds.len() == 2 => {
            bounds.iter().all(number) && number(step) && !zero(step)
        }
        ("array_slice", [_, bounds @ ..]) => bounds.len() == 2 && bounds.iter().all(number),
        ("array_element", [_, at]) => number(at),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, RecordBatch};
    use datafusion::prelude::SessionContext;

    use super::super::DEFS;
    use super::*;

    /// Names of functions, each with calls that must not fail. Functions that must not fail
    /// and are not listed here are called with one list. Lists hold integers (`i`), floats (`f`),
    /// strings (`s`), booleans (`b`) or lists (`n`); `k` is a column of integers.
    const CALLS: [(&str, &[&str]); 43] = [
        ("ragged_ndim", &["ragged_ndim(n)"]),
        ("ragged_shape", &["ragged_shape(n)", "ragged_shape(i)"]),
        ("ragged_max_shape", &["ragged_max_shape(n)"]),
        ("ragged_lengths", &["ragged_lengths(n)", "ragged_lengths(i)"]),
        ("ragged_count", &["ragged_count(n)", "ragged_count(n, 1)", "ragged_count(s)"]),
        ("ragged_flatten", &["ragged_flatten(n)", "ragged_flatten(i)"]),
        ("ragged_unsqueeze", &["ragged_unsqueeze(n, 2)", "ragged_unsqueeze(i, 1)"]),
        ("ragged_slice", &["ragged_slice(i, -100, 100, -3)", "ragged_slice(n, 1, 0, 2, 2)"]),
        ("ragged_head", &["ragged_head(i, 100)", "ragged_head(n, -100)"]),
        ("ragged_tail", &["ragged_tail(i, 100)", "ragged_tail(n, 0, 2)"]),
        ("ragged_at", &["ragged_at(i, k)", "ragged_at(i, -100)", "ragged_at(n, 0, 5)"]),
        ("ragged_at_or", &["ragged_at_or(i, 7, k)", "ragged_at_or(s, 'x', 100)"]),
        ("ragged_reverse", &["ragged_reverse(n)", "ragged_reverse(s)"]),
        ("ragged_searchsorted", &["ragged_searchsorted(i, k)", "ragged_searchsorted(f, 0.5)"]),
        ("ragged_mean", &["ragged_mean(i)", "ragged_mean(f)", "ragged_mean(n, -1)"]),
        ("ragged_min", &["ragged_min(i)", "ragged_min(s)", "ragged_min(n, 1)"]),
        ("ragged_max", &["ragged_max(f)", "ragged_max(s)", "ragged_max(n, 1)"]),
        ("ragged_std", &["ragged_std(i)", "ragged_std(f, -1, 0)"]),
        ("ragged_var", &["ragged_var(i)", "ragged_var(f, NULL, 0)"]),
        ("ragged_median", &["ragged_median(i)", "ragged_median(f)"]),
        ("ragged_argmin", &["ragged_argmin(i)", "ragged_argmin(f)"]),
        ("ragged_argmax", &["ragged_argmax(i)", "ragged_argmax(s)"]),
        ("ragged_first", &["ragged_first(n)", "ragged_first(s)"]),
        ("ragged_last", &["ragged_last(n)", "ragged_last(b)"]),
        ("ragged_nunique", &["ragged_nunique(f)", "ragged_nunique(s)"]),
        ("ragged_any", &["ragged_any(b)", "ragged_any(b, -1)"]),
        ("ragged_all", &["ragged_all(b)"]),
        ("ragged_not", &["ragged_not(b)"]),
        ("ragged_is_null", &["ragged_is_null(i)", "ragged_is_null(n)"]),
        ("ragged_is_nan", &["ragged_is_nan(f)"]),
        ("ragged_sign", &["ragged_sign(i)", "ragged_sign(f)"]),
        ("ragged_ceil", &["ragged_ceil(f)", "ragged_ceil(i)"]),
        ("ragged_floor", &["ragged_floor(f)"]),
        ("ragged_sqrt", &["ragged_sqrt(f)", "ragged_sqrt(i)"]),
        ("ragged_exp", &["ragged_exp(f)", "ragged_exp(i)"]),
        ("ragged_ln", &["ragged_ln(f)", "ragged_ln(i)"]),
        ("ragged_log2", &["ragged_log2(f)"]),
        ("ragged_log10", &["ragged_log10(f)"]),
        ("ragged_isin", &["ragged_isin(i, [1, 2])", "ragged_isin(s, ['a'])", "ragged_isin(i, i)"]),
        ("ragged_matches", &["ragged_matches(s, '^a|b$')"]),
        ("ragged_like", &["ragged_like(s, 'a%')", "ragged_like(s, '%\\')"]),
        ("ragged_ilike", &["ragged_ilike(s, '_A%')"]),
        ("ragged_starts_with", &["ragged_starts_with(s, 'a')"]),
    ];

    const ROWS: &str = "SELECT * FROM (VALUES
        (0, [1, NULL, 9223372036854775807, -9223372036854775807 - 1], [0.0, -0.0, 'NaN'::double, 'inf'::double],
            ['', 'a', NULL, 'ab'], [true, NULL], [[1, 2], [], NULL, [NULL]]),
        (1, [], [], [], [], []),
        (-1, NULL, NULL, NULL, NULL, NULL),
        (9223372036854775807, [0], [NULL], ['%_\\'], [false], [[]]),
        (NULL, [NULL], ['-inf'::double, 1e308, 1e308], [NULL], [NULL], [NULL])) t(k, i, f, s, b, n)";

    async fn rows_of(ctx: &SessionContext, sql: &str) -> Result<Vec<RecordBatch>> {
        ctx.sql(sql).await?.collect().await
    }

    #[tokio::test]
    async fn functions_that_never_fail_do_not() {
        let ctx = crate::sql::session();
        for def in DEFS {
            let total = matches!(def.fails, FailureCase::Never | FailureCase::ComputedArguments);
            let listed = CALLS.iter().find(|(name, _)| *name == def.name);
            let mut calls: Vec<String> = listed
                .map_or(&[][..], |(_, calls)| calls)
                .iter()
                .map(ToString::to_string)
                .collect();
            if total && listed.is_none() {
                // Calls the function with each list column (`i`, `f`, `s`, `b`, `n`) whose type
                // planning accepts.
                for list in ["i", "f", "s", "b", "n"] {
                    let call = format!("{}({list})", def.name);
                    if ctx.sql(&format!("SELECT {call} FROM ({ROWS})")).await.is_ok() {
                        calls.push(call);
                    }
                }
            }
            assert!(!total || !calls.is_empty(), "{} has no calls here", def.name);
            for call in calls {
                let sql = format!("SELECT {call} AS v FROM ({ROWS})");
                if let Err(e) = rows_of(&ctx, &sql).await {
                    panic!("{sql}\n{e}");
                }
            }
        }
    }

    #[tokio::test]
    async fn functions_that_keep_lengths_do() {
        let ctx = crate::sql::session();
        for (name, calls) in CALLS {
            let def = DEFS.iter().find(|def| def.name == name).unwrap();
            for call in calls.iter().filter(|_| def.keeps_lengths()) {
                let list = &call[call.find('(').unwrap() + 1..][..1];
                let sql = format!(
                    "SELECT count(*) FROM ({ROWS}) WHERE ragged_shape({call}) IS DISTINCT FROM ragged_shape({list})"
                );
                let rows = rows_of(&ctx, &sql).await.unwrap();
                let none: ArrayRef = Arc::new(arrow::array::Int64Array::from(vec![0]));
                assert_eq!(rows[0].column(0), &none, "{sql}");
            }
        }
    }
}
