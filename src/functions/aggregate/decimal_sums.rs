//! Sums and means of decimals, accumulated in a wider type.
//!
//! DataFusion's `sum` and `avg` add decimals in the width of the column and ignore overflow, so
//! sums wrap around. Here DataFusion's accumulators get the values in a wider type, and a sum or
//! mean that does not fit its own type is an error.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray};
use arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, Field, FieldRef,
};
use datafusion::common::exec_datafusion_err;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDF, EmitTo, GroupsAccumulator};
use datafusion::scalar::ScalarValue;
use serrate_core::internal::cast_strictly;

/// Number of digits by which a sum may be longer than its values: ten, enough for 10^10 values.
/// DataFusion assumes the same number for the type of a sum.
const DIGITS_OF_COUNTS: u8 = 10;

/// Returns the wider decimal type in which the argument `values` is summed. Returns `None` if its
/// own type is wide enough for every sum, or is not a decimal.
pub(super) fn sum_type(values: &[FieldRef]) -> Option<DataType> {
    let [values] = values else { return None };
    match *values.data_type() {
        DataType::Decimal32(_, scale) | DataType::Decimal64(_, scale) => {
            Some(DataType::Decimal128(DECIMAL128_MAX_PRECISION, scale))
        }
        DataType::Decimal128(precision, scale)
            if precision + DIGITS_OF_COUNTS > DECIMAL128_MAX_PRECISION =>
        {
            Some(DataType::Decimal256(DECIMAL256_MAX_PRECISION, scale))
        }
        _ => None,
    }
}

pub(super) struct WideSums<'a> {
    stock: &'a AggregateUDF,
    wide: DataType,
}

impl<'a> WideSums<'a> {
    pub(super) fn new(stock: &'a AggregateUDF, wide: DataType) -> Self {
        Self { stock, wide }
    }

    fn make_wide_field(&self) -> FieldRef {
        Arc::new(Field::new("x", self.wide.clone(), true))
    }

    fn create_over_wide<A>(
        &self,
        args: &AccumulatorArgs<'_>,
        create: impl FnOnce(AccumulatorArgs<'_>) -> DfResult<A>,
    ) -> DfResult<A> {
        let result = self.stock.return_type(std::slice::from_ref(&self.wide))?;
        create(AccumulatorArgs {
            return_field: Arc::new(Field::new(args.name, result, true)),
            schema: args.schema,
            ignore_nulls: args.ignore_nulls,
            order_bys: args.order_bys,
            is_reversed: args.is_reversed,
            name: args.name,
            is_distinct: args.is_distinct,
            exprs: args.exprs,
            expr_fields: &[self.make_wide_field()],
        })
    }

    pub(super) fn begin_rows(
        &self,
        args: &AccumulatorArgs<'_>,
        sliding: bool,
    ) -> DfResult<Box<dyn Accumulator>> {
        let inner = self.create_over_wide(args, |args| match sliding {
            true => self.stock.create_sliding_accumulator(args),
            false => self.stock.accumulator(args),
        })?;
        let types = WideTypes { wide: self.wide.clone(), result: args.return_type().clone() };
        Ok(Box::new(WideAccumulator { inner, types }))
    }

    pub(super) fn groups_accumulator(
        &self,
        args: &AccumulatorArgs<'_>,
    ) -> DfResult<Box<dyn GroupsAccumulator>> {
        let inner =
            self.create_over_wide(args, |args| self.stock.create_groups_accumulator(args))?;
        let types = WideTypes { wide: self.wide.clone(), result: args.return_type().clone() };
        Ok(Box::new(WideGroups { inner, types }))
    }

    pub(super) fn groups_accumulator_supported(&self, args: &AccumulatorArgs<'_>) -> bool {
        self.create_over_wide(args, |args| Ok(self.stock.groups_accumulator_supported(args)))
            .unwrap_or(false)
    }

    pub(super) fn state_fields(&self, args: &StateFieldsArgs<'_>) -> DfResult<Vec<FieldRef>> {
        let result = self.stock.return_type(std::slice::from_ref(&self.wide))?;
        self.stock.state_fields(StateFieldsArgs {
            name: args.name,
            input_fields: &[self.make_wide_field()],
            return_field: Arc::new(Field::new(args.name, result, true)),
            ordering_fields: args.ordering_fields,
            is_distinct: args.is_distinct,
        })
    }
}

#[derive(Debug)]
struct WideTypes {
    wide: DataType,
    result: DataType,
}

impl WideTypes {
    fn widen_values(&self, values: &[ArrayRef]) -> DfResult<Vec<ArrayRef>> {
        values.iter().map(|v| Ok(cast_strictly(v, &self.wide)?)).collect()
    }

    fn narrow_sums(&self, sums: &ArrayRef) -> DfResult<ArrayRef> {
        cast_strictly(sums, &self.result).map_err(|e| {
            exec_datafusion_err!(
                "a sum or mean does not fit its type {}: {e}; cast the values to decimals with fewer decimal places, or to DOUBLE",
                self.result
            )
        })
    }
}

#[derive(Debug)]
struct WideAccumulator {
    inner: Box<dyn Accumulator>,
    types: WideTypes,
}

impl Accumulator for WideAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> DfResult<()> {
        self.inner.update_batch(&self.types.widen_values(values)?)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> DfResult<()> {
        self.inner.retract_batch(&self.types.widen_values(values)?)
    }

    fn supports_retract_batch(&self) -> bool {
        self.inner.supports_retract_batch()
    }

    fn evaluate(&mut self) -> DfResult<ScalarValue> {
        let sum = self.types.narrow_sums(&self.inner.evaluate()?.to_array()?)?;
        ScalarValue::try_from_array(&sum, 0)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.inner.size()
    }

    fn state(&mut self) -> DfResult<Vec<ScalarValue>> {
        self.inner.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> DfResult<()> {
        self.inner.merge_batch(states)
    }
}

struct WideGroups {
    inner: Box<dyn GroupsAccumulator>,
    types: WideTypes,
}

impl GroupsAccumulator for WideGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> DfResult<()> {
        self.inner.update_batch(&self.types.widen_values(values)?, groups, filter, total)
    }

    fn evaluate(&mut self, emit: EmitTo) -> DfResult<ArrayRef> {
        self.types.narrow_sums(&self.inner.evaluate(emit)?)
    }

    fn state(&mut self, emit: EmitTo) -> DfResult<Vec<ArrayRef>> {
        self.inner.state(emit)
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> DfResult<()> {
        self.inner.merge_batch(states, groups, total)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> DfResult<Vec<ArrayRef>> {
        self.inner.convert_to_state(&self.types.widen_values(values)?, filter)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.inner.size()
    }
}
