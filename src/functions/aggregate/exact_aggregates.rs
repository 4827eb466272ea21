//! `sum`, `avg`, `var`, `stddev`, `covar`, `corr` and `regr_*`, computed from exact sums (sums
//! without rounding).
//!
//! DataFusion's aggregates add floats in order of arrival, so the last digits depend on batches,
//! partitions and files, and a sliding frame keeps rounding errors and NaN of rows that have left
//! it. The aggregates here round exact sums only when they are read, so the same rows give the same
//! bits. DataFusion's `sum` of integers wraps around; here a final sum that does not fit 64 bits is
//! an error. Decimals (see [`decimal_sums`](super::decimal_sums)), durations and intervals use
//! DataFusion's aggregates. Remove once `stock_float_aggregates_still_depend_on_the_cut` and
//! `stock_sums_of_integers_still_wrap` in the SQL tests fail.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::common::stats::Precision;
use datafusion::common::types::{
    NativeType, logical_float64, logical_int8, logical_int16, logical_int32, logical_int64,
    logical_uint8, logical_uint16, logical_uint32, logical_uint64,
};
use datafusion::error::Result as DfResult;
use datafusion::functions_aggregate::average::avg_udaf;
use datafusion::functions_aggregate::correlation::corr_udaf;
use datafusion::functions_aggregate::covariance::{covar_pop_udaf, covar_samp_udaf};
use datafusion::functions_aggregate::regr::{
    regr_avgx_udaf, regr_avgy_udaf, regr_count_udaf, regr_intercept_udaf, regr_r2_udaf,
    regr_slope_udaf, regr_sxx_udaf, regr_sxy_udaf, regr_syy_udaf,
};
use datafusion::functions_aggregate::stddev::{stddev_pop_udaf, stddev_udaf};
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::functions_aggregate::variance::{var_pop_udaf, var_samp_udaf};
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Coercion, Expr, GroupsAccumulator, Operator,
    ReversedUDAF, SetMonotonicity, Signature, StatisticsArgs, TypeSignature, TypeSignatureClass,
    Volatility,
};

use super::adapter::{GroupedAccumulator, SingleAccumulator};
use super::decimal_sums::{WideSums, sum_type};
use super::different::DistinctFold;
use super::moments::{MomentStatistic, Moments};
use crate::functions::delegate;
use serrate_core::internal::exact::ExactSumKind;

/// Metadata key of state columns that hold partial sums as lists of 64-bit words. These lists are
/// short, so `sql::pushdown::leaf_limit` does not reduce batch sizes for them.
pub(crate) const SUM_STATE: &str = "serrate.sum_state";

pub(crate) fn build_udafs() -> Vec<AggregateUDF> {
    let all = [
        (sum_udaf(), MomentStatistic::Sum),
        (avg_udaf(), MomentStatistic::Mean),
        (var_samp_udaf(), MomentStatistic::Variance { sample: true }),
        (var_pop_udaf(), MomentStatistic::Variance { sample: false }),
        (stddev_udaf(), MomentStatistic::Deviation { sample: true }),
        (stddev_pop_udaf(), MomentStatistic::Deviation { sample: false }),
        (covar_samp_udaf(), MomentStatistic::Covariance { sample: true }),
        (covar_pop_udaf(), MomentStatistic::Covariance { sample: false }),
        (corr_udaf(), MomentStatistic::Correlation),
        (regr_slope_udaf(), MomentStatistic::Slope),
        (regr_intercept_udaf(), MomentStatistic::Intercept),
        (regr_count_udaf(), MomentStatistic::Count),
        (regr_r2_udaf(), MomentStatistic::Determination),
        (regr_avgx_udaf(), MomentStatistic::MeanX),
        (regr_avgy_udaf(), MomentStatistic::MeanY),
        (regr_sxx_udaf(), MomentStatistic::SquaresX),
        (regr_syy_udaf(), MomentStatistic::SquaresY),
        (regr_sxy_udaf(), MomentStatistic::ProductsXy),
    ];
    let own =
        |(stock, statistic)| AggregateUDF::new_from_impl(ExactAggregate::new(stock, statistic));
    all.into_iter().map(own).collect()
}

pub(crate) fn make_exact_mean(of: Expr) -> Expr {
    AggregateUDF::new_from_impl(ExactAggregate::new(avg_udaf(), MomentStatistic::Mean))
        .call(vec![of])
}

pub(crate) fn make_exact_deviation(of: Expr) -> Expr {
    let statistic = MomentStatistic::Deviation { sample: true };
    AggregateUDF::new_from_impl(ExactAggregate::new(stddev_udaf(), statistic)).call(vec![of])
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ExactAggregate {
    stock: Arc<AggregateUDF>,
    statistic: MomentStatistic,
    signature: Signature,
}

impl ExactAggregate {
    fn new(stock: Arc<AggregateUDF>, statistic: MomentStatistic) -> Self {
        let signature = match statistic {
            MomentStatistic::Mean => make_mean_signature(),
            _ => stock.signature().clone(),
        };
        Self { stock, statistic, signature }
    }

    /// Returns how this aggregate adds arguments with the types of `fields` without rounding (as
    /// floats or as integers), or `None` if DataFusion's own aggregate is used for these types.
    fn find_exact_sum(&self, fields: &[FieldRef]) -> Option<ExactSumKind> {
        let is = |wanted: &DataType| fields.iter().all(|f| f.data_type() == wanted);
        match self.statistic {
            _ if fields.len() != self.statistic.count_arguments() => None,
            _ if is(&DataType::Float64) => Some(ExactSumKind::Float),
            MomentStatistic::Sum | MomentStatistic::Mean if is(&DataType::Int64) => {
                Some(ExactSumKind::Signed)
            }
            MomentStatistic::Sum | MomentStatistic::Mean if is(&DataType::UInt64) => {
                Some(ExactSumKind::Unsigned)
            }
            _ => None,
        }
    }

    /// Whether this is a sum or mean of the literal NULL, whose type DataFusion cannot sum or
    /// average.
    fn is_of_nothing(&self, fields: &[FieldRef]) -> bool {
        matches!(self.statistic, MomentStatistic::Sum | MomentStatistic::Mean)
            && fields.iter().all(|f| f.data_type().is_null())
    }

    /// Returns a sum or mean that passes wider decimals to DataFusion's aggregate if the sums of
    /// arguments with the types of `fields` could overflow. Returns `None` in other cases.
    fn find_wide_sums(&self, fields: &[FieldRef]) -> Option<WideSums<'_>> {
        let wide = match self.statistic {
            MomentStatistic::Sum | MomentStatistic::Mean => sum_type(fields)?,
            _ => return None,
        };
        Some(WideSums::new(&self.stock, wide))
    }

    fn begin_moments(&self, args: &AccumulatorArgs<'_>) -> Option<Moments> {
        Some(Moments::new(self.statistic, self.find_exact_sum(args.expr_fields)?))
    }

    fn begin_distinct(&self, args: &AccumulatorArgs<'_>) -> Option<Box<dyn Accumulator>> {
        let moments = Box::new(self.begin_moments(args)?);
        let types = || args.expr_fields.iter().map(|f| f.data_type().clone()).collect();
        Some(match args.is_distinct {
            true => Box::new(DistinctFold::new(moments, types())),
            false => Box::new(SingleAccumulator::new(moments)),
        })
    }
}

/// Returns the signature of `avg` without the cast of integers to Float64, which is lossy beyond
/// 2^53.
fn make_mean_signature() -> Signature {
    let class = |class| TypeSignature::Coercible(vec![Coercion::new_exact(class)]);
    let widened = |to, from: Vec<TypeSignatureClass>, native| {
        let to = TypeSignatureClass::Native(to);
        TypeSignature::Coercible(vec![Coercion::new_implicit(to, from, native)])
    };
    let native = |types: [_; 3]| types.map(TypeSignatureClass::Native).to_vec();
    let signed = native([logical_int8(), logical_int16(), logical_int32()]);
    let unsigned = native([logical_uint8(), logical_uint16(), logical_uint32()]);
    Signature::one_of(
        vec![
            class(TypeSignatureClass::Decimal),
            class(TypeSignatureClass::Duration),
            widened(logical_uint64(), unsigned, NativeType::UInt64),
            widened(logical_int64(), signed, NativeType::Int64),
            widened(logical_float64(), vec![TypeSignatureClass::Float], NativeType::Float64),
        ],
        Volatility::Immutable,
    )
}

impl AggregateUDFImpl for ExactAggregate {
    delegate!(stock: name, aliases, is_nullable, default_value, documentation);

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> DfResult<DataType> {
        match (self.statistic, types) {
            (MomentStatistic::Sum, [DataType::Null]) => Ok(DataType::Int64),
            (MomentStatistic::Mean, [DataType::Null]) => Ok(DataType::Float64),
            _ => self.stock.return_type(types),
        }
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> DfResult<Box<dyn Accumulator>> {
        if self.is_of_nothing(args.expr_fields) {
            return Ok(Box::new(EmptyAccumulator(args.return_type().clone())));
        }
        match (self.begin_distinct(&args), self.find_wide_sums(args.expr_fields)) {
            (Some(own), _) => Ok(own),
            (None, Some(wide)) => wide.begin_rows(&args, false),
            (None, None) => self.stock.accumulator(args),
        }
    }

    fn create_sliding_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> DfResult<Box<dyn Accumulator>> {
        if self.is_of_nothing(args.expr_fields) {
            return Ok(Box::new(EmptyAccumulator(args.return_type().clone())));
        }
        match (self.begin_distinct(&args), self.find_wide_sums(args.expr_fields)) {
            (Some(own), _) => Ok(own),
            (None, Some(wide)) => wide.begin_rows(&args, true),
            (None, None) => self.stock.create_sliding_accumulator(args),
        }
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        match self.find_exact_sum(args.expr_fields) {
            _ if self.is_of_nothing(args.expr_fields) => false,
            Some(_) => !args.is_distinct,
            None => match self.find_wide_sums(args.expr_fields) {
                Some(wide) => wide.groups_accumulator_supported(&args),
                None => self.stock.groups_accumulator_supported(args),
            },
        }
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> DfResult<Box<dyn GroupsAccumulator>> {
        match (self.begin_moments(&args), self.find_wide_sums(args.expr_fields)) {
            (Some(moments), _) => Ok(Box::new(GroupedAccumulator::new(Box::new(moments)))),
            (None, Some(wide)) => wide.groups_accumulator(&args),
            (None, None) => self.stock.create_groups_accumulator(args),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> DfResult<Vec<FieldRef>> {
        if self.is_of_nothing(args.input_fields) {
            let state = Field::new(format!("{}[0]", args.name), args.return_type().clone(), true);
            return Ok(vec![Arc::new(state)]);
        }
        if self.find_exact_sum(args.input_fields).is_none() {
            return match self.find_wide_sums(args.input_fields) {
                Some(wide) => wide.state_fields(&args),
                None => self.stock.state_fields(args),
            };
        }
        let types = match args.is_distinct {
            true => {
                let inputs = args.input_fields.iter().map(|f| f.data_type().clone());
                inputs.map(|t| DataType::new_list(t, true)).collect()
            }
            false => self.statistic.list_state_types(),
        };
        let metadata = HashMap::from([(SUM_STATE.to_owned(), String::new())]);
        let state = |(i, t)| {
            let field = Field::new(format!("{}[{i}]", args.name), t, true);
            Arc::new(match args.is_distinct {
                true => field,
                false => field.with_metadata(metadata.clone()),
            })
        };
        Ok(types.into_iter().enumerate().map(state).collect())
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    /// Disables rewrites of `sum(x + 0.1)` to `sum(x) + 0.1 * count(x)`, which rounds differently,
    /// and of `sum(x - 1)` to `sum(x) - count(x)`, in which `sum(x)` may overflow.
    fn simplify_expr_op_literal(
        &self,
        function: &AggregateFunction,
        arg: &Expr,
        op: Operator,
        literal: &Expr,
        arg_is_left: bool,
    ) -> DfResult<Option<Expr>> {
        match literal {
            Expr::Literal(value, _) if value.data_type().is_numeric() => Ok(None),
            _ => {
                self.stock.inner().simplify_expr_op_literal(function, arg, op, literal, arg_is_left)
            }
        }
    }

    /// Ignores the sums of float columns in file statistics, because these sums are rounded, and
    /// the statistics of inputs without rows.
    ///
    /// The statistics of a literal say that its sum is 0 if there are no rows, and DataFusion 55
    /// returns this 0 instead of NULL. The second condition is obsolete once the test
    /// `stock_sums_of_literals_without_rows_are_still_zero` fails.
    fn value_from_stats(&self, args: &StatisticsArgs<'_>) -> Option<ScalarValue> {
        let is_empty = args.statistics.num_rows == Precision::Exact(0);
        match args.return_type.is_floating() || is_empty {
            true => None,
            false => self.stock.value_from_stats(args),
        }
    }

    // DataFusion assumes that the results of a monotonic aggregate over growing frames are sorted
    // with NULL last. But a frame without values has the result NULL, so NULL comes first. No
    // aggregate is therefore declared as monotonic
    // (`stock_extremes_over_frames_still_count_as_sorted` in `tests/sql/claimed_orders.rs`).
    fn set_monotonicity(&self, _data_type: &DataType) -> SetMonotonicity {
        SetMonotonicity::NotMonotonic
    }
}

/// Accumulator of a sum or mean of the literal NULL. The result is NULL of type `self.0`.
#[derive(Debug)]
struct EmptyAccumulator(DataType);

impl Accumulator for EmptyAccumulator {
    fn update_batch(&mut self, _values: &[ArrayRef]) -> DfResult<()> {
        Ok(())
    }

    fn retract_batch(&mut self, _values: &[ArrayRef]) -> DfResult<()> {
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> DfResult<ScalarValue> {
        ScalarValue::try_from(&self.0)
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> DfResult<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn merge_batch(&mut self, _states: &[ArrayRef]) -> DfResult<()> {
        Ok(())
    }
}
