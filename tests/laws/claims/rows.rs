//! Checks claims about the rows of one partition: their order, constant columns and equal columns.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::row::{OwnedRow, RowConverter, Rows, SortField};
use datafusion::common::internal_err;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::physical_expr::equivalence::AcrossPartitions;
use datafusion::physical_expr::{LexOrdering, PhysicalExpr};
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use serrate::datafusion;

use super::{ClaimsExec, describe, plain_floats, values_of};

/// The claims of one node about the rows of one partition.
pub struct RowClaims {
    node: String,
    schema: SchemaRef,
    /// Whether the rows have values. A placeholder row has NULL in all columns, even in those that
    /// its schema declares as not nullable, and is not checked.
    is_filled: bool,
    orders: Vec<Ordered>,
    equals: Vec<Equal>,
}

struct Ordered {
    order: LexOrdering,
    converter: RowConverter,
    last: Option<OwnedRow>,
}

/// Expressions that the node claims to be equal in each row.
struct Equal {
    exprs: Vec<Arc<dyn PhysicalExpr>>,
    /// Whether the node also claims that the value is the same in all rows.
    constant: bool,
    converter: RowConverter,
    value: Option<OwnedRow>,
}

impl RowClaims {
    pub fn of(node: &Arc<dyn ExecutionPlan>) -> Self {
        let schema = node.schema();
        let known = node.equivalence_properties();
        let orders =
            known.oeq_class().iter().filter_map(|order| Ordered::new(order, &schema)).collect();
        // A scan claims also conditions that it uses only to skip row groups. The filter above
        // applies them to each row, so they are not checked at the scan.
        let classes = known.eq_group().iter().filter(|_| !is_scan(node));
        let equals = classes.filter_map(|class| {
            let constant = class.iter().find_map(|e| known.eq_group().is_expr_constant(e));
            Equal::new(class.iter().cloned().collect(), constant, &schema)
        });
        let equals = equals.collect();
        let is_filled = !node.is::<PlaceholderRowExec>();
        Self { node: describe(node), schema, is_filled, orders, equals }
    }

    pub fn check(&mut self, batch: &RecordBatch) -> Result<()> {
        for (field, column) in self.schema.fields().iter().zip(batch.columns()) {
            if self.is_filled && !field.is_nullable() && column.logical_null_count() > 0 {
                return internal_err!("claims: {} has NULL in {}", self.node, field.name());
            }
        }
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

/// Returns whether a node returns the rows of a scan unchanged, perhaps in other partitions.
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
    /// Returns the check of an order, or `None` if a sort key has a type that `RowConverter` does
    /// not support.
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
