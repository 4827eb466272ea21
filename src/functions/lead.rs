//! `lead` and `lag` with IGNORE NULLS, and with a default that is not a literal.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, new_null_array};
use arrow::compute::kernels::zip::zip;
use arrow::compute::{CastOptions, SortOptions, cast_with_options, concat, is_null};
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::functions_window::lead_lag::{lag_udwf, lead_udwf};
use datafusion::logical_expr::function::{
    ExpressionArgs, PartitionEvaluatorArgs, WindowFunctionSimplification, WindowUDFFieldArgs,
};
use datafusion::logical_expr::{
    Documentation, LimitEffect, PartitionEvaluator, ReversedUDWF, Signature, WindowUDF,
    WindowUDFImpl,
};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Literal;

/// Returns `lead` and `lag`, which evaluate a whole partition at once if they ignore NULL.
///
/// DataFusion may evaluate them row by row, and `lead(x, n) IGNORE NULLS` then counts a following
/// NULL, which it should skip. It replaces `lag` with `lead` to evaluate a window in the opposite
/// order. Obsolete once the test `stock_leads_over_null_are_still_wrong` fails.
///
/// DataFusion also treats an offset of NULL as 0. Obsolete once the test `stock_lags_by_null_are_still_values` fails.
///
/// A LIMIT above `lag(x, -n)` drops the rows below the window that the function needs, because DataFusion
/// assumes that `lag` only looks back. Obsolete once the test `stock_lags_forward_still_lose_rows` fails.
///
/// A default that is not a literal is evaluated for the row of the result. DataFusion refuses such defaults.
pub(crate) fn shifted_windows() -> [WindowUDF; 2] {
    [lead_udwf(), lag_udwf()].map(|stock| WindowUDF::new_from_impl(Shifted { stock }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Shifted {
    stock: Arc<WindowUDF>,
}

impl WindowUDFImpl for Shifted {
    fn name(&self) -> &str {
        self.stock.name()
    }

    fn aliases(&self) -> &[String] {
        self.stock.aliases()
    }

    fn signature(&self) -> &Signature {
        self.stock.signature()
    }

    fn expressions(&self, args: ExpressionArgs<'_>) -> Vec<Arc<dyn PhysicalExpr>> {
        let (exprs, fields) = (args.input_exprs(), args.input_fields());
        let Some(default) = find_column_default(exprs) else {
            return self.stock.expressions(args);
        };
        // Omits the default here, because DataFusion returns no expressions if the default is not a literal.
        let mut values = self.stock.expressions(ExpressionArgs::new(&exprs[..2], &fields[..2]));
        values.push(Arc::clone(default));
        values
    }

    fn partition_evaluator(
        &self,
        args: PartitionEvaluatorArgs<'_>,
    ) -> Result<Box<dyn PartitionEvaluator>> {
        let (exprs, fields) = (args.input_exprs(), args.input_fields());
        let ignores_nulls = args.ignore_nulls();
        let offset = exprs.get(1).and_then(|e| e.downcast_ref::<Literal>()).map(Literal::value);
        let is_null = offset.is_some_and(ScalarValue::is_null);
        if find_column_default(exprs).is_some() {
            let rows_back = self.count_rows_back(offset, args.is_reversed())?;
            let args = PartitionEvaluatorArgs::new(
                &exprs[..2],
                &fields[..2],
                args.is_reversed(),
                ignores_nulls,
            );
            let stock = self.stock.partition_evaluator_factory(args)?;
            let default = Some(ColumnDefault { rows_back, ignores_nulls });
            return Ok(Box::new(WholePartition { stock, is_null, default }));
        }
        let stock = self.stock.partition_evaluator_factory(args)?;
        Ok(match ignores_nulls || is_null {
            true => Box::new(WholePartition { stock, is_null, default: None }),
            false => stock,
        })
    }

    fn simplify(&self) -> Option<WindowFunctionSimplification> {
        self.stock.simplify()
    }

    fn field(&self, args: WindowUDFFieldArgs<'_>) -> Result<FieldRef> {
        self.stock.field(args)
    }

    fn sort_options(&self) -> Option<SortOptions> {
        self.stock.sort_options()
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.stock.coerce_types(types)
    }

    fn reverse_expr(&self) -> ReversedUDWF {
        match self.stock.reverse_expr() {
            ReversedUDWF::Reversed(stock) => {
                ReversedUDWF::Reversed(Arc::new(WindowUDF::new_from_impl(Self { stock })))
            }
            other => other,
        }
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.stock.documentation()
    }

    fn limit_effect(&self, args: &[Arc<dyn PhysicalExpr>]) -> LimitEffect {
        match args.get(1).map(|e| e.downcast_ref::<Literal>().map(Literal::value)) {
            Some(Some(ScalarValue::Int64(Some(0..)))) | None => {
                self.stock.inner().limit_effect(args)
            }
            Some(_) => LimitEffect::Unknown,
        }
    }
}

impl Shifted {
    /// Returns by how many rows the value precedes the row of the result; negative if it follows.
    fn count_rows_back(&self, offset: Option<&ScalarValue>, is_reversed: bool) -> Result<i64> {
        let rows = match offset.map(|offset| offset.cast_to(&DataType::Int64)).transpose()? {
            Some(ScalarValue::Int64(Some(rows))) => rows,
            _ => 1,
        };
        let looks_back = (self.name() == "lag") != is_reversed;
        Ok(if looks_back { rows } else { rows.saturating_neg() })
    }
}

fn find_column_default(exprs: &[Arc<dyn PhysicalExpr>]) -> Option<&Arc<dyn PhysicalExpr>> {
    exprs.get(2).filter(|default| !default.is::<Literal>())
}

#[derive(Debug)]
struct WholePartition {
    stock: Box<dyn PartitionEvaluator>,
    /// Whether the offset is NULL. All results are then NULL.
    is_null: bool,
    default: Option<ColumnDefault>,
}

/// A default that is not a literal. Its values are the last array in the arguments of the evaluation.
#[derive(Debug)]
struct ColumnDefault {
    /// See [`Shifted::count_rows_back`].
    rows_back: i64,
    ignores_nulls: bool,
}

impl ColumnDefault {
    /// Replaces the results of rows for which `lead` or `lag` found no value with the defaults of these rows.
    fn fill_missing(&self, found: &ArrayRef, defaults: &ArrayRef) -> Result<ArrayRef> {
        let checked = CastOptions { safe: false, ..CastOptions::default() };
        let defaults = cast_with_options(defaults, found.data_type(), &checked)?;
        if self.ignores_nulls {
            // If NULLs are ignored, a value that was found is never NULL, so a NULL means that none was found.
            return Ok(zip(&is_null(found)?, &defaults, found)?);
        }
        let rows = found.len();
        let missing = usize::try_from(self.rows_back.unsigned_abs()).unwrap_or(rows).min(rows);
        let valued = rows - missing;
        Ok(match self.rows_back < 0 {
            true => concat(&[&found.slice(0, valued), &defaults.slice(valued, missing)])?,
            false => concat(&[&defaults.slice(0, missing), &found.slice(missing, valued)])?,
        })
    }
}

impl PartitionEvaluator for WholePartition {
    fn get_range(&self, row: usize, rows: usize) -> Result<Range<usize>> {
        self.stock.get_range(row, rows)
    }

    fn evaluate_all(&mut self, values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        let found = self.stock.evaluate_all(values, rows)?;
        if self.is_null {
            return Ok(new_null_array(found.data_type(), rows));
        }
        match (&self.default, values.last()) {
            (Some(default), Some(defaults)) => default.fill_missing(&found, defaults),
            _ => Ok(found),
        }
    }

    fn evaluate(&mut self, values: &[ArrayRef], range: &Range<usize>) -> Result<ScalarValue> {
        self.stock.evaluate(values, range)
    }

    fn supports_bounded_execution(&self) -> bool {
        false
    }

    fn uses_window_frame(&self) -> bool {
        self.stock.uses_window_frame()
    }

    fn include_rank(&self) -> bool {
        self.stock.include_rank()
    }
}
