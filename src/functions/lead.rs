//! `lead` and `lag` with IGNORE NULLS.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, new_null_array};
use arrow::compute::SortOptions;
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
/// DataFusion may evaluate them row by row. Then `lead(x, n) IGNORE NULLS` counts wrongly if a NULL follows:
/// the offset points at the NULL, which it should skip. `lag` counts correctly, but DataFusion replaces it
/// with `lead` to evaluate a window in the opposite order. Obsolete once the test
/// `stock_leads_over_null_are_still_wrong` fails.
///
/// DataFusion also takes an offset of NULL for 0. Obsolete once the test
/// `stock_lags_by_null_are_still_values` fails.
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
        self.stock.expressions(args)
    }

    fn partition_evaluator(
        &self,
        args: PartitionEvaluatorArgs<'_>,
    ) -> Result<Box<dyn PartitionEvaluator>> {
        let ignores_nulls = args.ignore_nulls();
        let offset = args.input_exprs().get(1).and_then(|e| e.downcast_ref::<Literal>());
        let is_null = offset.is_some_and(|offset| offset.value().is_null());
        let stock = self.stock.partition_evaluator_factory(args)?;
        Ok(match ignores_nulls || is_null {
            true => Box::new(WholePartition { stock, is_null }),
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
        self.stock.inner().limit_effect(args)
    }
}

/// Evaluates a function over all rows of a partition at once.
#[derive(Debug)]
struct WholePartition {
    stock: Box<dyn PartitionEvaluator>,
    /// Whether the offset is NULL. All results are then NULL.
    is_null: bool,
}

impl PartitionEvaluator for WholePartition {
    fn get_range(&self, row: usize, rows: usize) -> Result<Range<usize>> {
        self.stock.get_range(row, rows)
    }

    fn evaluate_all(&mut self, values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        let found = self.stock.evaluate_all(values, rows)?;
        Ok(match self.is_null {
            true => new_null_array(found.data_type(), rows),
            false => found,
        })
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
