//! Aggregate functions, whose names end in `_agg`.
//!
//! An [`AggDef`] defines an aggregate by its result type and a function that creates its state, a
//! [`GroupStates`] over numbered groups. [`adapter`] makes DataFusion's accumulators from a state.

mod adapter;
mod concat;
mod decimal_sums;
mod different;
mod elementwise;
mod exact_aggregates;
mod extremes;
mod group_states;
mod grouped_rows;
mod histogram;
mod kept_rows;
mod max_shape;
mod moments;
mod nest_aggregate;
mod nested_extremes;
mod picked_rows;
mod quantile;
mod replaced;
mod sliding_extremes;
mod sliding_frames;
mod time_averages;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{ScalarValue, plan_err};
use datafusion::error::{DataFusionError, Result as DfResult};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, GroupsAccumulator, Signature,
    Volatility,
};
use datafusion::physical_expr::expressions::Literal;

use super::args::check_arity;
use super::def::remove_other_extension;
use super::doc::Doc;
use super::lists::NestedListType;
use crate::array::list_depth;
use crate::error::{Error, Result};
use adapter::{GroupedAccumulator, SingleAccumulator};
pub(crate) use exact_aggregates::{
    SUM_STATE, build_udafs as exact_aggregates, make_exact_deviation, make_exact_mean,
};
pub(crate) use extremes::{build_udafs as float_extremes, find_interval_extreme};
pub(super) use group_states::GroupStates;
pub(super) use moments::{MomentStatistic, Moments};
pub(crate) use replaced::{build_udafs as replaced_aggregates, keep_window_order};
pub(crate) use time_averages::{OVER_TIMES, extend_to_times};

pub(super) static AGGREGATES: &[&AggDef] = &[
    &elementwise::SUM,
    &elementwise::MEAN,
    &elementwise::MIN,
    &elementwise::MAX,
    &nest_aggregate::NEST,
    &concat::CONCAT,
    &histogram::HISTOGRAM,
];

pub(super) fn build_udafs() -> Vec<AggregateUDF> {
    let ours = AGGREGATES.iter().map(|def| AggregateUDF::new_from_impl(RaggedUdaf::new(def)));
    ours.chain(std::iter::once(max_shape::build_udaf())).collect()
}

pub(super) fn list_entries() -> impl Iterator<Item = (&'static str, &'static Doc)> {
    let ours = AGGREGATES.iter().map(|def| (def.name, &def.doc));
    ours.chain(std::iter::once((max_shape::NAME, &max_shape::DOC)))
}

#[cfg(test)]
pub(super) fn find_aggregate_arity(name: &str) -> Option<(usize, usize)> {
    let ours = AGGREGATES.iter().find(|def| def.name == name).map(|def| def.arity);
    ours.or_else(|| (name == max_shape::NAME).then_some((1, 1)))
}

pub(super) struct AggDef {
    pub(super) name: &'static str,
    pub(super) arity: (usize, usize),
    pub(super) doc: Doc,
    /// Whether ORDER BY inside the call changes the result.
    pub(super) ordered: bool,
    /// Whether the result contains values of the input column and therefore keeps the metadata of
    /// the column.
    pub(super) keeps_values: bool,
    pub(super) facts: AggFacts,
    pub(super) plan: fn(&AggTypes<'_>) -> Result<DataType>,
    /// Returns the types of the partial state that partitions exchange.
    pub(super) state: fn(&AggTypes<'_>) -> Result<Vec<DataType>>,
    pub(super) begin: fn(&AggBegin<'_>) -> Result<Box<dyn GroupStates>>,
}

/// Facts about an aggregate that planner rules use. [`NONE`](Self::NONE) is the default.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AggFacts {
    /// Whether planning refuses DISTINCT: because the accumulators ignore it although it would
    /// change the result, or because the aggregate uses every row, as `ragged_histogram_agg` does
    /// to count values.
    pub(crate) refuses_distinct: bool,
    /// Whether DISTINCT applies to the first of several arguments, as in
    /// `string_agg(DISTINCT x, ',')`. Planning refuses DISTINCT for other aggregates of several
    /// arguments.
    pub(crate) distinct_of_first: bool,
    /// Whether the result depends on the order of rows, as for `first_value`. If the call has an
    /// ORDER BY, only the order of rows with equal sort keys matters.
    pub(crate) any_row: bool,
    /// Whether the function compares its inputs. If so, `sql::workarounds::types::times` refuses
    /// calls on intervals unless it can make the function compare their lengths.
    pub(crate) compares: bool,
    /// Whether the function orders its inputs or counts distinct inputs.
    /// If so, `sql::workarounds::grouping::float_keys` makes equal floats identical.
    pub(crate) orders_values: bool,
}

impl AggFacts {
    pub(crate) const NONE: Self = Self {
        refuses_distinct: false,
        distinct_of_first: false,
        any_row: false,
        compares: false,
        orders_values: false,
    };

    pub(crate) const REFUSES_DISTINCT: Self = Self { refuses_distinct: true, ..Self::NONE };

    pub(crate) const ANY_ROW: Self = Self { any_row: true, ..Self::NONE };

    pub(crate) const COMPARES: Self = Self { compares: true, ..Self::NONE };
}

pub(super) fn find_facts(name: &str) -> Option<&'static AggFacts> {
    AGGREGATES.iter().find(|def| def.name == name).map(|def| &def.facts)
}

pub(super) struct AggTypes<'a> {
    name: &'static str,
    types: Vec<&'a DataType>,
    /// Types of the ORDER BY expressions inside the call.
    ordering: Vec<DataType>,
}

impl<'a> AggTypes<'a> {
    fn from_arguments(def: &AggDef, types: Vec<&'a DataType>) -> Result<Self> {
        check_arity(def.name, def.arity, types.len(), def.doc.syntax)?;
        Ok(Self { name: def.name, types, ordering: Vec::new() })
    }

    pub(super) fn data_type(&self, i: usize) -> &'a DataType {
        self.types[i]
    }

    pub(super) fn len(&self) -> usize {
        self.types.len()
    }

    pub(super) fn ordering(&self) -> &[DataType] {
        &self.ordering
    }

    /// Returns the list levels of the first argument, which must be a list, or `None` for an
    /// untyped NULL.
    pub(super) fn require_lists(&self) -> Result<Option<NestedListType>> {
        match self.types[0] {
            DataType::Null => Ok(None),
            t if list_depth(t) > 0 => Ok(Some(NestedListType::from_type(t))),
            t => Err(self.refuse_types(format!(
                "argument 1 must be a list (List, LargeList or FixedSizeList); it is {t}"
            ))),
        }
    }

    pub(super) fn refuse_types(&self, message: impl fmt::Display) -> Error {
        Error::invalid(format!("{}: {message}", self.name))
    }
}

/// Types, sort options and literals of a call, from which the state is created.
pub(super) struct AggBegin<'a> {
    pub(super) types: AggTypes<'a>,
    pub(super) returns: &'a DataType,
    pub(super) sort: Vec<arrow::compute::SortOptions>,
    literals: Vec<Option<&'a ScalarValue>>,
}

impl AggBegin<'_> {
    pub(super) fn find_literal(&self, i: usize) -> Option<&ScalarValue> {
        self.literals.get(i).copied().flatten()
    }
}

struct RaggedUdaf {
    def: &'static AggDef,
    signature: Signature,
    documentation: Documentation,
}

impl RaggedUdaf {
    fn new(def: &'static AggDef) -> Self {
        Self {
            def,
            signature: Signature::variadic_any(Volatility::Immutable),
            documentation: def.doc.to_documentation(),
        }
    }

    fn begin_fold(&self, args: &AccumulatorArgs<'_>) -> DfResult<Box<dyn GroupStates>> {
        if args.is_distinct {
            return plan_err!(
                "{} does not support DISTINCT; select distinct rows first, as in FROM (SELECT DISTINCT ..)",
                self.def.name
            );
        }
        let mut types = AggTypes::from_arguments(
            self.def,
            args.expr_fields.iter().map(|f| f.data_type()).collect(),
        )?;
        let mut sort = Vec::new();
        if self.def.ordered {
            for by in args.order_bys {
                types.ordering.push(by.expr.data_type(args.schema)?);
                sort.push(by.options);
            }
        }
        let literals =
            args.exprs.iter().map(|e| e.downcast_ref::<Literal>().map(Literal::value)).collect();
        let returns = args.return_field.data_type();
        Ok((self.def.begin)(&AggBegin { types, returns, sort, literals })?)
    }
}

impl fmt::Debug for RaggedUdaf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RaggedUdaf").field(&self.def.name).finish()
    }
}

/// Functions have no state, so the name identifies them.
impl PartialEq for RaggedUdaf {
    fn eq(&self, other: &Self) -> bool {
        self.def.name == other.def.name
    }
}

impl Eq for RaggedUdaf {}

impl Hash for RaggedUdaf {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.def.name.hash(state);
    }
}

impl AggregateUDFImpl for RaggedUdaf {
    fn name(&self) -> &str {
        self.def.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> DfResult<DataType> {
        let types =
            AggTypes::from_arguments(self.def, types.iter().collect()).map_err(to_plan_error)?;
        (self.def.plan)(&types).map_err(to_plan_error)
    }

    fn return_field(&self, fields: &[FieldRef]) -> DfResult<FieldRef> {
        let types: Vec<_> = fields.iter().map(|f| f.data_type().clone()).collect();
        let field = Field::new(self.def.name, self.return_type(&types)?, true);
        let Some(first) = fields.first().filter(|_| self.def.keeps_values) else {
            return Ok(Arc::new(field));
        };
        let field = Arc::new(field.with_metadata(first.metadata().clone()));
        Ok(Arc::new(remove_other_extension(field, fields)))
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> DfResult<Box<dyn Accumulator>> {
        Ok(Box::new(SingleAccumulator::new(self.begin_fold(&args)?)))
    }

    fn create_sliding_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> DfResult<Box<dyn Accumulator>> {
        let fold = self.begin_fold(&args)?;
        match fold.retracts() {
            true => Ok(Box::new(SingleAccumulator::new(fold))),
            false => Ok(sliding_frames::replay_frames(
                AggregateUDF::new_from_impl(Self::new(self.def)),
                &args,
            )),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> DfResult<Vec<FieldRef>> {
        let inputs = args.input_fields.iter().map(|f| f.data_type()).collect();
        let mut types = AggTypes::from_arguments(self.def, inputs)?;
        if self.def.ordered {
            types.ordering = args.ordering_fields.iter().map(|f| f.data_type().clone()).collect();
        }
        let states = (self.def.state)(&types)?.into_iter().enumerate();
        Ok(states
            .map(|(i, t)| Arc::new(Field::new(format!("{}[{i}]", args.name), t, true)))
            .collect())
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        !args.is_distinct
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> DfResult<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(GroupedAccumulator::new(self.begin_fold(&args)?)))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        match self.def.ordered {
            true => AggregateOrderSensitivity::Beneficial,
            false => AggregateOrderSensitivity::Insensitive,
        }
    }

    fn with_beneficial_ordering(
        self: Arc<Self>,
        _: bool,
    ) -> DfResult<Option<Arc<dyn AggregateUDFImpl>>> {
        // Returns the same function for sorted input: its state checks whether the rows of a group
        // are sorted.
        Ok(self.def.ordered.then(|| Arc::new(Self::new(self.def)) as Arc<dyn AggregateUDFImpl>))
    }

    fn documentation(&self) -> Option<&Documentation> {
        Some(&self.documentation)
    }
}

fn to_plan_error(e: Error) -> DataFusionError {
    match e {
        Error::DataFusion(e) => *e,
        e => DataFusionError::Plan(e.to_string()),
    }
}
