//! Corrects DataFusion aggregates that return wrong results for some calls.

use std::sync::Arc;

use arrow::datatypes::FieldRef;
use datafusion::error::Result as DfResult;
use datafusion::functions_aggregate::any_value::any_value_udaf;
use datafusion::functions_aggregate::approx_distinct::approx_distinct_udaf;
use datafusion::functions_aggregate::approx_median::approx_median_udaf;
use datafusion::functions_aggregate::approx_percentile_cont::approx_percentile_cont_udaf;
use datafusion::functions_aggregate::array_agg::array_agg_udaf;
use datafusion::functions_aggregate::bit_and_or_xor::{bit_and_udaf, bit_or_udaf, bit_xor_udaf};
use datafusion::functions_aggregate::bool_and_or::{bool_and_udaf, bool_or_udaf};
use datafusion::functions_aggregate::first_last::{first_value_udaf, last_value_udaf};
use datafusion::functions_aggregate::percentile_cont::percentile_cont_udaf;
use datafusion::functions_aggregate::string_agg::string_agg_udaf;
use datafusion::logical_expr::function::{
    AccumulatorArgs, AggregateFunctionSimplification, StateFieldsArgs,
};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF,
};
use datafusion::physical_expr::expressions::CastExpr;
use datafusion::physical_expr::{PhysicalExpr, PhysicalSortExpr};

use super::adapter::GroupedAccumulator;
use super::picked_rows::{PickedRows, picks_rows};
use super::{quantile, sliding_frames};
use crate::functions::delegate;
use crate::kernels::text::is_text;

pub(crate) fn build_udafs() -> [AggregateUDF; 14] {
    let stock = [
        approx_distinct_udaf(),
        approx_median_udaf(),
        approx_percentile_cont_udaf(),
        array_agg_udaf(),
        string_agg_udaf(),
        percentile_cont_udaf(),
        bool_and_udaf(),
        bool_or_udaf(),
        bit_and_udaf(),
        bit_or_udaf(),
        bit_xor_udaf(),
        any_value_udaf(),
        first_value_udaf(),
        last_value_udaf(),
    ];
    stock.map(|stock| AggregateUDF::new_from_impl(MendedAggregate { stock, in_window: false }))
}

/// Returns the function that replaces `function` in calls with OVER if the result depends on the
/// order of rows, because DataFusion might reverse this order. Returns `None` if the result does
/// not depend on the order, or if `function` already is such a replacement.
pub(crate) fn keep_window_order(function: &AggregateUDF) -> Option<Arc<AggregateUDF>> {
    let mended: &MendedAggregate = function.inner().downcast_ref()?;
    let is_ordered = ["array_agg", "string_agg"].contains(&function.name());
    (is_ordered && !mended.in_window).then(|| {
        let mended = MendedAggregate { in_window: true, ..mended.clone() };
        Arc::new(AggregateUDF::new_from_impl(mended))
    })
}

/// If the first argument of a call with DISTINCT is the sort key `key` cast to another string type,
/// returns this argument. Otherwise, returns `key`.
///
/// Type coercion casts the argument of `string_agg(DISTINCT code, ',' ORDER BY code)` over codes of
/// a dictionary, but not the sort key. DataFusion then rejects the call, because it finds no
/// argument that equals the key. This workaround is obsolete once the test
/// `stock_texts_of_dictionaries_are_still_no_keys` fails.
fn find_sorted_argument(
    key: &Arc<dyn PhysicalExpr>,
    args: &AccumulatorArgs<'_>,
) -> Arc<dyn PhysicalExpr> {
    // Coercion may cast twice: `CAST(CAST(code AS Utf8) AS LargeUtf8)`.
    let is_cast_key = |argument: &&Arc<dyn PhysicalExpr>| {
        let mut value = *argument;
        while let Some(cast) = value.downcast_ref::<CastExpr>() {
            if !cast.cast_type().is_string() {
                return false;
            }
            value = cast.expr();
        }
        value.eq(key) && key.data_type(args.schema).is_ok_and(|from| is_text(&from))
    };
    Arc::clone(args.exprs.first().filter(is_cast_key).unwrap_or(key))
}

/// A DataFusion aggregate whose results are corrected in seven cases:
///
/// * If the input is sorted in the opposite order, DataFusion reverses the window of `array_agg(x)
///   OVER (ORDER BY x ..)`, and returns the list in the opposite order. Remove once
///   `stock_lists_of_reversed_windows_are_still_reversed` fails.
/// * If the input is sorted in the opposite order, DataFusion reverses the sort keys of
///   `array_agg(DISTINCT x ORDER BY x)`, but does not reverse the list of distinct values. Remove
///   once `stock_reversed_distinct_aggregates_are_still_wrong` fails.
/// * `string_agg(DISTINCT x, ',' ORDER BY x)` fails over dictionaries; see
///   [`find_sorted_argument`].
/// * `percentile_cont` interpolates with weights of only six digits, and panics if the partial
///   aggregation of many groups is skipped. Remove once `stock_percentiles_still_have_six_digits`
///   and `stock_percentiles_of_many_groups_still_panic` fail.
/// * Some aggregates fail over sliding frames; see [`sliding_frames`].
/// * `bit_xor(DISTINCT x)` with GROUP BY uses repeated values, or fails over several partitions.
///   Remove once `stock_bits_of_groups_still_ignore_distinct` fails.
/// * `first_value`, `last_value` and `any_value` of lists hold more memory than they need; see
///   [`PickedRows`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct MendedAggregate {
    stock: Arc<AggregateUDF>,
    /// Whether the aggregate is called with OVER and its result depends on the order of rows, so
    /// that DataFusion must not reverse them; set by [`keep_window_order`].
    in_window: bool,
}

impl MendedAggregate {
    fn is_percentile(&self) -> bool {
        self.stock.name() == "percentile_cont"
    }
}

impl AggregateUDFImpl for MendedAggregate {
    delegate!(stock: name, aliases, aggregate_names, signature, coerce_types, return_type, is_nullable, default_value, documentation);

    fn return_field(&self, fields: &[FieldRef]) -> DfResult<FieldRef> {
        self.stock.return_field(fields)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> DfResult<Box<dyn Accumulator>> {
        if self.is_percentile() {
            return quantile::make_accumulator(&self.stock, args);
        }
        if !args.is_distinct {
            return self.stock.accumulator(args);
        }
        let keys = args.order_bys.iter().map(|key| {
            let options = if args.is_reversed { !key.options } else { key.options };
            PhysicalSortExpr::new(find_sorted_argument(&key.expr, &args), options)
        });
        let keys: Vec<PhysicalSortExpr> = keys.collect();
        let args = AccumulatorArgs { order_bys: &keys, is_reversed: false, ..args };
        self.stock.accumulator(args)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> DfResult<Vec<FieldRef>> {
        self.stock.state_fields(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        // DataFusion's grouped accumulator of `bit_xor` ignores DISTINCT.
        let ignores_distinct = args.is_distinct && self.stock.name() == "bit_xor";
        !ignores_distinct
            && (picks_rows(self.stock.name(), &args)
                || self.stock.groups_accumulator_supported(args))
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> DfResult<Box<dyn GroupsAccumulator>> {
        if picks_rows(self.stock.name(), &args) {
            let rows = PickedRows::new(self.stock.name(), &args)?;
            return Ok(Box::new(GroupedAccumulator::new(Box::new(rows))));
        }
        match self.is_percentile() {
            true => quantile::make_groups_accumulator(&self.stock, args),
            false => self.stock.create_groups_accumulator(args),
        }
    }

    fn create_sliding_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> DfResult<Box<dyn Accumulator>> {
        match self.is_percentile() {
            true => quantile::make_accumulator(&self.stock, args),
            false => sliding_frames::make_accumulator(&self.stock, args),
        }
    }

    fn with_beneficial_ordering(
        self: Arc<Self>,
        is_ordered: bool,
    ) -> DfResult<Option<Arc<dyn AggregateUDFImpl>>> {
        let stock = self.stock.as_ref().clone().with_beneficial_ordering(is_ordered)?;
        let in_window = self.in_window;
        Ok(stock.map(|stock| Arc::new(Self { stock: Arc::new(stock), in_window }) as _))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.stock.order_sensitivity()
    }

    fn simplify(&self) -> Option<AggregateFunctionSimplification> {
        // DataFusion replaces percentiles 0 and 1 by `min` and `max`, which order NaN differently.
        match self.is_percentile() {
            true => None,
            false => self.stock.simplify(),
        }
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        match self.stock.reverse_udf() {
            ReversedUDAF::Reversed(_) if self.in_window => ReversedUDAF::NotSupported,
            ReversedUDAF::Reversed(stock) => {
                let reversed = Self { stock, in_window: false };
                ReversedUDAF::Reversed(Arc::new(AggregateUDF::new_from_impl(reversed)))
            }
            other => other,
        }
    }

    fn supports_null_handling_clause(&self) -> bool {
        self.stock.supports_null_handling_clause()
    }

    fn supports_within_group_clause(&self) -> bool {
        self.stock.supports_within_group_clause()
    }
}
