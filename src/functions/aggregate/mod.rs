//! Functions over many rows; their names end in `_agg`.
//!
//! An aggregate is one [`AggDef`]: what it returns, and how it begins. What it holds is a [`Fold`],
//! which knows groups only; [`adapter`] makes DataFusion's two kinds of accumulators of it.

mod adapter;
mod concat;
mod different;
mod elementwise;
mod exact_floats;
mod extremes;
mod histogram;
mod max_shape;
mod moments;
mod nest;
mod nested_extremes;
mod rows;
mod sliding_extremes;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::ArrayRef;
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

use super::doc::Doc;
use super::lists::Lists;
use crate::array::list_depth;
use crate::error::{Error, Result};
use adapter::{Grouped, Single};
pub(crate) use exact_floats::{SUM_STATE, exact_deviation, exact_mean, udafs as exact_floats};
pub(crate) use extremes::udafs as float_extremes;

/// Every aggregate, in the order of the documentation.
pub(super) static AGGREGATES: &[&AggDef] = &[
    &elementwise::SUM,
    &elementwise::MEAN,
    &elementwise::MIN,
    &elementwise::MAX,
    &nest::NEST,
    &concat::CONCAT,
    &histogram::HISTOGRAM,
];

/// All aggregates as DataFusion wants them.
pub(super) fn udafs() -> Vec<AggregateUDF> {
    let ours = AGGREGATES.iter().map(|def| AggregateUDF::new_from_impl(RaggedUdaf::new(def)));
    ours.chain(std::iter::once(max_shape::udaf())).collect()
}

/// Names and documentation of all aggregates.
pub(super) fn entries() -> impl Iterator<Item = (&'static str, &'static Doc)> {
    let ours = AGGREGATES.iter().map(|def| (def.name, &def.doc));
    ours.chain(std::iter::once((max_shape::NAME, &max_shape::DOC)))
}

/// Fewest and most arguments of an aggregate.
#[cfg(test)]
pub(super) fn arity(name: &str) -> Option<(usize, usize)> {
    let ours = AGGREGATES.iter().find(|def| def.name == name).map(|def| def.arity);
    ours.or_else(|| (name == max_shape::NAME).then_some((1, 1)))
}

/// An aggregate as data.
pub(super) struct AggDef {
    /// Name in SQL; ends in `_agg`.
    pub(super) name: &'static str,
    /// Fewest and most arguments.
    pub(super) arity: (usize, usize),
    /// How it is shown to people.
    pub(super) doc: Doc,
    /// Whether ORDER BY inside of the call changes the result.
    pub(super) ordered: bool,
    /// Whether values come out as they went in, and keep what is written on their column.
    pub(super) keeps_values: bool,
    /// Type of the result for types of arguments.
    pub(super) plan: fn(&AggTypes<'_>) -> Result<DataType>,
    /// Types of what is passed on between partitions.
    pub(super) state: fn(&AggTypes<'_>) -> Result<Vec<DataType>>,
    /// Nothing aggregated yet.
    pub(super) begin: fn(&AggBegin<'_>) -> Result<Box<dyn Fold>>,
}

/// Types of the arguments of an aggregate.
pub(super) struct AggTypes<'a> {
    name: &'static str,
    types: Vec<&'a DataType>,
    /// Of ORDER BY inside of the call.
    ordering: Vec<DataType>,
}

impl<'a> AggTypes<'a> {
    fn of(def: &AggDef, types: Vec<&'a DataType>) -> Result<Self> {
        let (least, most) = def.arity;
        if !(least..=most).contains(&types.len()) {
            return Err(Error::invalid(format!(
                "{} takes {}; {} given. Write {}",
                def.name,
                if least == most {
                    format!("{least} argument(s)")
                } else {
                    format!("{least} to {most} arguments")
                },
                types.len(),
                def.doc.syntax.join(" or ")
            )));
        }
        Ok(Self { name: def.name, types, ordering: Vec::new() })
    }

    /// Type of an argument.
    pub(super) fn data_type(&self, i: usize) -> &'a DataType {
        self.types[i]
    }

    /// Number of arguments.
    pub(super) fn len(&self) -> usize {
        self.types.len()
    }

    /// Types of what ORDER BY inside of the call sorts by.
    pub(super) fn ordering(&self) -> &[DataType] {
        &self.ordering
    }

    /// The first argument, which must be a list; `None` for a NULL without a type.
    pub(super) fn lists(&self) -> Result<Option<Lists>> {
        match self.types[0] {
            DataType::Null => Ok(None),
            t if list_depth(t) > 0 => Ok(Some(Lists::of(t))),
            t => Err(self.refuse(
                0,
                format!("must be a list (List, LargeList or FixedSizeList); it is {t}"),
            )),
        }
    }

    /// An error about one argument.
    pub(super) fn refuse(&self, i: usize, message: impl fmt::Display) -> Error {
        Error::invalid(format!("{}: argument {} {message}", self.name, i + 1))
    }
}

/// What is known when aggregation begins.
pub(super) struct AggBegin<'a> {
    /// Types of the arguments.
    pub(super) types: AggTypes<'a>,
    /// Type of the result.
    pub(super) returns: &'a DataType,
    /// How ORDER BY inside of the call sorts.
    pub(super) sort: Vec<arrow::compute::SortOptions>,
    literals: Vec<Option<&'a ScalarValue>>,
}

impl AggBegin<'_> {
    /// The value of an argument that is written out.
    pub(super) fn literal(&self, i: usize) -> Option<&ScalarValue> {
        self.literals.get(i).copied().flatten()
    }
}

/// Values of many groups, as far as they are aggregated.
///
/// Groups are numbers from 0. Those that no value was seen of are there all the same.
pub(super) trait Fold: fmt::Debug + Send + Sync {
    /// The same aggregate with nothing aggregated.
    fn fresh(&self) -> Result<Box<dyn Fold>>;

    /// Takes up rows: the arguments, then what ORDER BY sorts by.
    fn update(&mut self, values: &[ArrayRef], groups: &[usize]) -> Result<()>;

    /// Takes up rows of group 0.
    fn update_one(&mut self, values: &[ArrayRef]) -> Result<()> {
        let rows = values.first().map_or(0, |v| v.len());
        self.update(values, &vec![0; rows])
    }

    /// Whether rows can be taken away again.
    fn retracts(&self) -> bool {
        false
    }

    /// Takes rows of group 0 away that were taken up before.
    fn retract_one(&mut self, _values: &[ArrayRef]) -> Result<()> {
        Err(Error::invalid("rows of this aggregate cannot be taken away again"))
    }

    /// Takes up what [`state`](Self::state) of another gave.
    fn merge(&mut self, states: &[ArrayRef], groups: &[usize]) -> Result<()>;

    /// What there is of the first `groups` groups, to be merged elsewhere.
    fn state(&mut self, groups: usize) -> Result<Vec<ArrayRef>>;

    /// The results of the first `groups` groups.
    fn result(&mut self, groups: usize) -> Result<ArrayRef>;

    /// Forgets the first `groups` groups; those behind move up.
    fn forget(&mut self, groups: usize) -> Result<()>;

    /// Bytes in use.
    fn size(&self) -> usize;
}

/// [`AggDef`] as DataFusion wants it.
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

    fn begin(&self, args: &AccumulatorArgs<'_>) -> DfResult<Box<dyn Fold>> {
        if args.is_distinct {
            return plan_err!(
                "{} does not take DISTINCT: select distinct rows first, FROM (SELECT DISTINCT ..)",
                self.def.name
            );
        }
        let mut types =
            AggTypes::of(self.def, args.expr_fields.iter().map(|f| f.data_type()).collect())?;
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

/// Functions carry no state: the name is the identity.
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
        let types = AggTypes::of(self.def, types.iter().collect()).map_err(planning)?;
        (self.def.plan)(&types).map_err(planning)
    }

    fn return_field(&self, fields: &[FieldRef]) -> DfResult<FieldRef> {
        let types: Vec<_> = fields.iter().map(|f| f.data_type().clone()).collect();
        let field = Field::new(self.def.name, self.return_type(&types)?, true);
        Ok(Arc::new(match fields.first() {
            Some(first) if self.def.keeps_values => field.with_metadata(first.metadata().clone()),
            _ => field,
        }))
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> DfResult<Box<dyn Accumulator>> {
        Ok(Box::new(Single::new(self.begin(&args)?)))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> DfResult<Vec<FieldRef>> {
        let inputs = args.input_fields.iter().map(|f| f.data_type()).collect();
        let mut types = AggTypes::of(self.def, inputs)?;
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
        Ok(Box::new(Grouped::new(self.begin(&args)?)))
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
        // Whether rows are in order is seen when they are there.
        Ok(self.def.ordered.then(|| Arc::new(Self::new(self.def)) as Arc<dyn AggregateUDFImpl>))
    }

    fn documentation(&self) -> Option<&Documentation> {
        Some(&self.documentation)
    }
}

fn planning(e: Error) -> DataFusionError {
    match e {
        Error::DataFusion(e) => *e,
        e => DataFusionError::Plan(e.to_string()),
    }
}
