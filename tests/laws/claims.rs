//! Claims: what the nodes of a physical plan promise about their rows, checked while the plan runs.
//!
//! A planner omits a sort where a node claims the order of it. A wrong claim changes an answer only
//! if the rest of the statement depends on it, so few statements show it; this check finds the claim
//! itself. Within each partition, it checks the claimed orders, the columns claimed to be constant,
//! and the columns claimed to be equal.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{DataType, Float16Type, Float32Type, Float64Type, SchemaRef};
use datafusion::arrow::row::{OwnedRow, RowConverter, Rows, SortField};
use datafusion::common::internal_err;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::equivalence::AcrossPartitions;
use datafusion::physical_expr::{LexOrdering, PhysicalExpr};
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
};
use futures::StreamExt;
use serrate::datafusion;

/// Marks a session whose plans check the claims of their nodes.
#[derive(Debug)]
pub struct CheckClaims;

/// Returns a finished plan that checks the claims of each node.
pub fn checked(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = plan.transform_up(|node| {
        let node: Arc<dyn ExecutionPlan> = Arc::new(ClaimsExec { input: node });
        Ok(Transformed::yes(node))
    })?;
    Ok(plan.data)
}

/// Returns the rows of its input, or an error at the first row for which a claim does not hold.
#[derive(Debug)]
struct ClaimsExec {
    input: Arc<dyn ExecutionPlan>,
}

impl DisplayAs for ClaimsExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClaimsExec")
    }
}

impl ExecutionPlan for ClaimsExec {
    fn name(&self) -> &str {
        "ClaimsExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let [input] = <[_; 1]>::try_from(children).unwrap();
        Ok(Arc::new(Self { input }))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let rows = self.input.execute(partition, context)?;
        let mut claims = Claims::of(&self.input);
        let schema = rows.schema();
        let checked = rows.map(move |batch| {
            let batch = batch?;
            claims.check(&batch)?;
            Ok(batch)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, checked)))
    }
}

/// The claims of a node about one partition.
struct Claims {
    node: String,
    orders: Vec<Ordered>,
    equals: Vec<Equal>,
}

struct Ordered {
    order: LexOrdering,
    converter: RowConverter,
    last: Option<OwnedRow>,
}

/// Expressions with the same value in each row.
struct Equal {
    exprs: Vec<Arc<dyn PhysicalExpr>>,
    /// The value is the same in all rows.
    constant: bool,
    converter: RowConverter,
    value: Option<OwnedRow>,
}

impl Claims {
    fn of(node: &Arc<dyn ExecutionPlan>) -> Self {
        let schema = node.schema();
        let known = node.equivalence_properties();
        let orders = known.oeq_class().iter().filter_map(|order| Ordered::new(order, &schema));
        // A scan also claims conditions that it uses only to skip row groups. A filter above it applies
        // them to each row.
        let classes = known.eq_group().iter().filter(|_| !is_scan(node));
        let equals = classes.filter_map(|class| {
            let constant = class.iter().find_map(|e| known.eq_group().is_expr_constant(e));
            Equal::new(class.iter().cloned().collect(), constant, &schema)
        });
        let line = datafusion::physical_plan::displayable(node.as_ref()).one_line().to_string();
        Self { node: line.trim().to_owned(), orders: orders.collect(), equals: equals.collect() }
    }

    fn check(&mut self, batch: &RecordBatch) -> Result<()> {
        for order in &mut self.orders {
            if !order.holds(batch)? {
                return internal_err!("claims: {} is not sorted by {}", self.node, order.order);
            }
        }
        for equal in &mut self.equals {
            if !equal.holds(batch)? {
                let exprs: Vec<_> = equal.exprs.iter().map(ToString::to_string).collect();
                let kind = if equal.constant { "constant" } else { "equal" };
                return internal_err!("claims: {} has no {kind} {exprs:?}", self.node);
            }
        }
        Ok(())
    }
}

/// Whether a node returns the rows of a scan, in any partitions.
fn is_scan(node: &Arc<dyn ExecutionPlan>) -> bool {
    match node.children()[..] {
        [] => node.is::<DataSourceExec>(),
        [input] => {
            let passes = node.is::<ClaimsExec>() || node.is::<RepartitionExec>();
            (passes || node.is::<CooperativeExec>()) && is_scan(input)
        }
        _ => false,
    }
}

impl Ordered {
    /// `None` if the types of the order cannot be compared here.
    fn new(order: &LexOrdering, schema: &SchemaRef) -> Option<Self> {
        let fields = order.iter().map(|by| {
            let kind = by.expr.data_type(schema).ok()?;
            Some(SortField::new_with_options(kind, by.options))
        });
        let converter = RowConverter::new(fields.collect::<Option<_>>()?).ok()?;
        Some(Self { order: order.clone(), converter, last: None })
    }

    fn holds(&mut self, batch: &RecordBatch) -> Result<bool> {
        if batch.num_rows() == 0 {
            return Ok(true);
        }
        let columns = self.order.iter().map(|by| values_of(&by.expr, batch));
        let rows = self.converter.convert_columns(&columns.collect::<Result<Vec<_>>>()?)?;
        let first = self.last.as_ref().is_none_or(|last| last.row() <= rows.row(0));
        self.last = Some(rows.row(rows.num_rows() - 1).owned());
        Ok(first && (1..rows.num_rows()).all(|at| rows.row(at - 1) <= rows.row(at)))
    }
}

impl Equal {
    fn new(
        exprs: Vec<Arc<dyn PhysicalExpr>>,
        constant: Option<AcrossPartitions>,
        schema: &SchemaRef,
    ) -> Option<Self> {
        let kind = exprs.first()?.data_type(schema).ok()?;
        if exprs.iter().any(|e| e.data_type(schema).ok().as_ref() != Some(&kind)) {
            return None;
        }
        let field = SortField::new_with_options(kind.clone(), SortOptions::default());
        let converter = RowConverter::new(vec![field]).ok()?;
        let value = match &constant {
            Some(AcrossPartitions::Uniform(value)) => value.as_ref(),
            _ => None,
        };
        let value = value.filter(|value| value.data_type() == kind).map(|value| {
            let array = plain_floats(&value.to_array().unwrap());
            converter.convert_columns(&[array]).unwrap().row(0).owned()
        });
        Some(Self { exprs, constant: constant.is_some(), converter, value })
    }

    fn holds(&mut self, batch: &RecordBatch) -> Result<bool> {
        if batch.num_rows() == 0 {
            return Ok(true);
        }
        let columns = self.exprs.iter().map(|e| {
            let rows = self.converter.convert_columns(&[values_of(e, batch)?])?;
            Ok::<Rows, datafusion::error::DataFusionError>(rows)
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let first = &columns[0];
        let same = columns.iter().all(|other| first.iter().eq(other.iter()));
        if !self.constant {
            return Ok(same);
        }
        let value = self.value.get_or_insert_with(|| first.row(0).owned());
        Ok(same && first.iter().all(|row| row == value.row()))
    }
}

fn values_of(expr: &Arc<dyn PhysicalExpr>, batch: &RecordBatch) -> Result<ArrayRef> {
    Ok(plain_floats(&expr.evaluate(batch)?.into_array(batch.num_rows())?))
}

/// Replaces -0.0 with 0.0 and every NaN with one NaN, as comparisons treat them.
fn plain_floats(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Float16 => {
            Arc::new(array.as_primitive::<Float16Type>().unary::<_, Float16Type>(|v| {
                if v.is_nan() { half::f16::NAN } else { v + half::f16::ZERO }
            }))
        }
        DataType::Float32 => Arc::new(array.as_primitive::<Float32Type>().unary::<_, Float32Type>(
            |v| {
                if v.is_nan() { f32::NAN } else { v + 0.0 }
            },
        )),
        DataType::Float64 => Arc::new(array.as_primitive::<Float64Type>().unary::<_, Float64Type>(
            |v| {
                if v.is_nan() { f64::NAN } else { v + 0.0 }
            },
        )),
        _ => Arc::clone(array),
    }
}
