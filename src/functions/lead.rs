//! `lead` and `lag` with IGNORE NULLS, and with an offset or a default that is not a literal.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, BooleanBufferBuilder, UInt64Array, new_null_array,
};
use arrow::compute::kernels::zip::zip;
use arrow::compute::{SortOptions, concat, is_null, not, nullif, take};
use arrow::datatypes::{DataType, FieldRef, Int64Type};
use datafusion::common::{ScalarValue, exec_err, plan_err};
use datafusion::error::Result;
use datafusion::functions_window::lead_lag::{lag_udwf, lead_udwf};
use datafusion::logical_expr::function::{
    ExpressionArgs, PartitionEvaluatorArgs, WindowFunctionSimplification, WindowUDFFieldArgs,
};
use datafusion::logical_expr::{
    LimitEffect, PartitionEvaluator, ReversedUDWF, WindowUDF, WindowUDFImpl,
};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Literal;
use serrate_core::internal::{cast_exactly, cast_strictly};

use super::delegate;
use crate::array::{RaggedArray, leaf_type, list_depth};

/// Returns `lead` and `lag`, which evaluate a whole partition at once if they ignore NULL.
///
/// DataFusion may evaluate them row by row, and `lead(x, n) IGNORE NULLS` then counts a following
/// NULL, which it should skip. This also concerns `lag`, because DataFusion replaces it with `lead`
/// to evaluate a window in the opposite order. This workaround is obsolete once the test
/// `stock_leads_over_null_are_still_wrong` fails.
///
/// DataFusion also treats an offset of NULL as 0. This workaround is obsolete once the test
/// `stock_lags_by_null_are_still_values` fails.
///
/// A LIMIT on `lag(x, -n)` also limits the input of the window and drops later rows that
/// `lag` needs, because DataFusion assumes that `lag` only looks back. This workaround is obsolete
/// once the test `stock_lags_forward_still_lose_rows` fails.
///
/// DataFusion casts a default to the type of the values, so that 1.5, as the default of integers,
/// would be 1. The returned functions refuse such a default.
///
/// DataFusion refuses an offset or a default that is not a literal. The returned functions evaluate
/// such an argument for the row of the result.
pub(crate) fn build_shifted_windows() -> [WindowUDF; 2] {
    [lead_udwf(), lag_udwf()].map(|stock| WindowUDF::new_from_impl(ShiftFunction { stock }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ShiftFunction {
    stock: Arc<WindowUDF>,
}

impl WindowUDFImpl for ShiftFunction {
    delegate!(stock: name, aliases, signature, coerce_types, documentation);

    fn expressions(&self, args: ExpressionArgs<'_>) -> Vec<Arc<dyn PhysicalExpr>> {
        let (exprs, fields) = (args.input_exprs(), args.input_fields());
        let default = find_column_default(exprs);
        let mut values = match default {
            // Omits the default here, because DataFusion returns no expressions if the default is
            // not a literal.
            Some(_) => self.stock.expressions(ExpressionArgs::new(&exprs[..2], &fields[..2])),
            None => self.stock.expressions(args),
        };
        values.extend(find_column_offset(exprs).into_iter().chain(default).cloned());
        values
    }

    fn partition_evaluator(
        &self,
        args: PartitionEvaluatorArgs<'_>,
    ) -> Result<Box<dyn PartitionEvaluator>> {
        let (exprs, fields) = (args.input_exprs(), args.input_fields());
        let ignores_nulls = args.ignore_nulls();
        self.check_default(exprs, fields)?;
        if find_column_offset(exprs).is_some() {
            return self.shift_by_column(&args);
        }
        let offset = exprs.get(1).and_then(|e| e.downcast_ref::<Literal>()).map(Literal::value);
        let is_null = offset.is_some_and(ScalarValue::is_null);
        if !is_null {
            self.check_offset(fields)?;
        }
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

    fn reverse_expr(&self) -> ReversedUDWF {
        match self.stock.reverse_expr() {
            ReversedUDWF::Reversed(stock) => {
                ReversedUDWF::Reversed(Arc::new(WindowUDF::new_from_impl(Self { stock })))
            }
            other => other,
        }
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

impl ShiftFunction {
    /// Returns the evaluator of a call whose offset is not a literal. Returns an error for IGNORE
    /// NULLS, and for an offset that is not an integer.
    fn shift_by_column(
        &self,
        args: &PartitionEvaluatorArgs<'_>,
    ) -> Result<Box<dyn PartitionEvaluator>> {
        let name = self.name();
        if args.ignore_nulls() {
            return plan_err!(
                "{name}(..) IGNORE NULLS needs a constant as its second argument, the offset, but found a column or an expression; write a number such as 1"
            );
        }
        self.check_offset(args.input_fields())?;
        let default = args.input_exprs().get(2).and_then(|e| e.downcast_ref::<Literal>());
        Ok(Box::new(ColumnOffset {
            looks_back: (name == "lag") != args.is_reversed(),
            default: default.map_or(ScalarValue::Null, |default| default.value().clone()),
        }))
    }

    fn check_offset(&self, fields: &[FieldRef]) -> Result<()> {
        let offset = fields.get(1).map(|field| field.data_type());
        match offset.filter(|t| !t.is_integer() && !t.is_null()) {
            Some(other) => plan_err!(
                "the second argument of {}, the offset, must be an integer, not {other}; cast it to BIGINT",
                self.name()
            ),
            None => Ok(()),
        }
    }

    /// Returns an error if the default is a literal that the cast to the type of the values would
    /// change.
    fn check_default(&self, exprs: &[Arc<dyn PhysicalExpr>], fields: &[FieldRef]) -> Result<()> {
        let default = exprs.get(2).and_then(|e| e.downcast_ref::<Literal>()).map(Literal::value);
        let (Some(default), Some(values)) = (default, fields.first()) else { return Ok(()) };
        cast_defaults(&default.to_array()?, None, values.data_type()).map(drop)
    }

    /// Returns how many rows back a call looks for the value of a row: positive for `lag`, negative
    /// (rows ahead) for `lead`, and the opposite if `is_reversed`, because the rows then come in
    /// reverse order. Without an offset, the number of rows is 1.
    fn count_rows_back(&self, offset: Option<&ScalarValue>, is_reversed: bool) -> Result<i64> {
        let rows = match offset.map(|offset| offset.cast_to(&DataType::Int64)).transpose()? {
            Some(ScalarValue::Int64(Some(rows))) => rows,
            _ => 1,
        };
        let looks_back = (self.name() == "lag") != is_reversed;
        Ok(if looks_back { rows } else { rows.saturating_neg() })
    }
}

/// Returns the offset of a call, or `None` if it is a literal or is not given.
fn find_column_offset(exprs: &[Arc<dyn PhysicalExpr>]) -> Option<&Arc<dyn PhysicalExpr>> {
    exprs.get(1).filter(|offset| !offset.is::<Literal>())
}

fn find_column_default(exprs: &[Arc<dyn PhysicalExpr>]) -> Option<&Arc<dyn PhysicalExpr>> {
    exprs.get(2).filter(|default| !default.is::<Literal>())
}

/// Evaluates a function whose offset is not a literal. Its input arrays are the values, the
/// offsets, and the defaults if they are not a literal.
#[derive(Debug)]
struct ColumnOffset {
    looks_back: bool,
    /// The default if it is a literal, else NULL.
    default: ScalarValue,
}

impl PartitionEvaluator for ColumnOffset {
    fn evaluate_all(&mut self, values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        let [shifted, offsets, defaults @ ..] = values else {
            return exec_err!(
                "internal error: an offset of lead or lag is missing; please report it"
            );
        };
        let offsets = cast_strictly(offsets, &DataType::Int64)?;
        let count = u64::try_from(rows).unwrap_or(u64::MAX);
        let mut missing = BooleanBufferBuilder::new(rows);
        let places = offsets.as_primitive::<Int64Type>().iter().zip(0i64..).map(|(offset, row)| {
            let place = match self.looks_back {
                true => row.checked_sub(offset?),
                false => row.checked_add(offset?),
            };
            Some(place.and_then(|place| u64::try_from(place).ok()).filter(|place| *place < count))
        });
        // `missing` marks the rows that get the default: their offset leads outside of the
        // partition. A row whose offset is NULL is not marked, because its result is NULL.
        let places = places.map(|place| {
            missing.append(place == Some(None));
            place.flatten()
        });
        let found = take(shifted, &places.collect::<UInt64Array>(), None)?;
        let missing = BooleanArray::new(missing.finish(), None);
        let defaults = match defaults {
            [column] => cast_defaults(column, Some(&missing), found.data_type())?,
            _ if self.default.is_null() => return Ok(found),
            _ => self.default.cast_to(found.data_type())?.to_array_of_size(rows)?,
        };
        Ok(zip(&missing, &defaults, &found)?)
    }
}

#[derive(Debug)]
struct WholePartition {
    stock: Box<dyn PartitionEvaluator>,
    /// Whether the offset is NULL. All results are then NULL.
    is_null: bool,
    default: Option<ColumnDefault>,
}

/// A default that is not a literal. The last array that the evaluator receives has its values.
#[derive(Debug)]
struct ColumnDefault {
    /// How many rows back the call looks for the value of a row; negative if it looks ahead.
    rows_back: i64,
    ignores_nulls: bool,
}

impl ColumnDefault {
    /// Replaces the results of rows for which `lead` or `lag` found no value with the defaults of
    /// these rows.
    fn fill_missing(&self, found: &ArrayRef, defaults: &ArrayRef) -> Result<ArrayRef> {
        if self.ignores_nulls {
            // If NULLs are ignored, a value that was found is never NULL, so a NULL means that no
            // value was found.
            let missing = is_null(found)?;
            let defaults = cast_defaults(defaults, Some(&missing), found.data_type())?;
            return Ok(zip(&missing, &defaults, found)?);
        }
        let rows = found.len();
        let missing = usize::try_from(self.rows_back.unsigned_abs()).unwrap_or(rows).min(rows);
        let valued = rows - missing;
        let first = if self.rows_back < 0 { valued } else { 0 };
        let defaults = cast_defaults(&defaults.slice(first, missing), None, found.data_type())?;
        Ok(match self.rows_back < 0 {
            true => concat(&[&found.slice(0, valued), &defaults])?,
            false => concat(&[&defaults, &found.slice(missing, valued)])?,
        })
    }
}

/// Casts defaults to the type `to` of the values. `missing` marks the rows that get their default;
/// if it is `None`, all do. Returns an error for such a default that the cast would change: a
/// fraction for integers, or a time of day for dates, also in lists.
fn cast_defaults(
    defaults: &ArrayRef,
    missing: Option<&BooleanArray>,
    to: &DataType,
) -> Result<ArrayRef> {
    use DataType::{Date32, Date64, Timestamp};
    let (from, to_leaf) = (leaf_type(defaults.data_type()), leaf_type(to));
    let may_change = to_leaf.is_integer() && (from.is_floating() || from.is_decimal())
        || matches!(from, Timestamp(..)) && matches!(to_leaf, Date32 | Date64);
    if !may_change {
        return Ok(cast_strictly(defaults, to)?);
    }
    let used = match missing {
        Some(missing) => nullif(defaults, &not(missing)?)?,
        None => Arc::clone(defaults),
    };
    let what = "lead or lag: argument 3, the default,";
    if list_depth(used.data_type()) == 0 {
        return Ok(cast_exactly(what, &used, to)?);
    }
    cast_exactly(what, RaggedArray::try_from_arrow(&used)?.leaves(), to_leaf)?;
    Ok(cast_strictly(&used, to)?)
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
