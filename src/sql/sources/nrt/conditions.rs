//! Conditions that a scan of `.nrt` files evaluates itself.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{AsArray, BooleanArray, RecordBatch};
use arrow::datatypes::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{
    BinaryExpr, Column, DynamicFilterPhysicalExpr, Literal,
};
use datafusion::physical_expr::utils::{collect_columns, reassign_expr_columns};
use datafusion::physical_expr::{PhysicalExpr, conjunction};
use datafusion::physical_expr_common::physical_expr::{is_volatile, snapshot_physical_expr};

use super::position_fields::ROW;
use crate::array::list_depth;

type FilterCondition = Arc<dyn PhysicalExpr>;

#[derive(Clone, Debug, Default)]
pub(super) struct RowFilter {
    conditions: Vec<FilterCondition>,
}

impl RowFilter {
    /// Whether a scan evaluates a condition: it must not be volatile or use lists, structs or maps.
    pub(super) fn accepts_condition(condition: &FilterCondition, schema: &TableSchema) -> bool {
        let schema = schema.table_schema();
        !is_volatile(condition)
            && collect_columns(condition).iter().all(|column| {
                schema.field_with_name(column.name()).is_ok_and(|field| {
                    list_depth(field.data_type()) == 0
                        && !matches!(field.data_type(), DataType::Struct(_) | DataType::Map(_, _))
                })
            })
    }

    pub(super) fn with_conditions(&self, more: impl IntoIterator<Item = FilterCondition>) -> Self {
        let conditions = self.conditions.iter().cloned().chain(more).collect();
        Self { conditions }
    }

    /// Removes dynamic filters. They change while the query runs, so the rows that a LIMIT returns
    /// would depend on timing.
    pub(super) fn remove_dynamic(&self) -> Self {
        let dynamic = |condition: &FilterCondition| {
            condition.exists(|e| Ok(e.downcast_ref::<DynamicFilterPhysicalExpr>().is_some()))
        };
        let fixed = |c: &&FilterCondition| !dynamic(c).unwrap_or(true);
        Self { conditions: self.conditions.iter().filter(fixed).cloned().collect() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.conditions.is_empty()
    }

    pub(super) fn predicate(&self) -> Option<FilterCondition> {
        (!self.is_empty()).then(|| conjunction(self.conditions.iter().cloned()))
    }

    pub(super) fn visit_conditions(
        &self,
        f: &mut dyn FnMut(&FilterCondition) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        datafusion::physical_plan::apply_expression_roots(self.conditions.iter(), f)
    }

    /// Groups the conditions by the data that they read. Dynamic filters are used in their current
    /// state. `constant` returns whether a column has one value in the whole file. `row` is false
    /// if the file has a column `_row` of its own, and true if `_row` means the row position.
    pub(super) fn group_conditions(
        &self,
        constant: impl Fn(&str) -> bool,
        row: bool,
    ) -> Result<ScanConditions> {
        let mut out = ScanConditions::default();
        for condition in &self.conditions {
            let condition = snapshot_physical_expr(Arc::clone(condition))?;
            if is_true(&condition) {
                continue;
            }
            let columns = collect_columns(&condition);
            let place = if columns.iter().all(|c| constant(c.name())) {
                &mut out.file
            } else if columns.iter().all(|c| constant(c.name()) || (row && c.name() == ROW)) {
                &mut out.rows
            } else {
                &mut out.values
            };
            place.push(condition);
        }
        Ok(out)
    }
}

impl fmt::Display for RowFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, condition) in self.conditions.iter().enumerate() {
            write!(f, "{}{condition}", if i == 0 { "" } else { " AND " })?;
        }
        Ok(())
    }
}

fn is_true(condition: &FilterCondition) -> bool {
    let literal = condition.downcast_ref::<Literal>();
    literal.is_some_and(|l| *l.value() == ScalarValue::Boolean(Some(true)))
}

#[derive(Debug, Default)]
pub(super) struct ScanConditions {
    /// Conditions on `_file`, the path of the file, and on partition columns. The file need not be
    /// read for them.
    pub(super) file: Vec<FilterCondition>,
    /// Conditions on `_row`, the index of a row in the file. They require only the file's header.
    pub(super) rows: Vec<FilterCondition>,
    /// All other conditions, for which the file must be read. They use flat columns, which have one
    /// value per row.
    pub(super) values: Vec<FilterCondition>,
}

pub(super) fn list_condition_columns(conditions: &[FilterCondition]) -> Vec<String> {
    let mut names: Vec<String> = conditions
        .iter()
        .flat_map(|c| collect_columns(c).into_iter().map(|c: Column| c.name().to_owned()))
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Evaluates all conditions for the rows of a batch, whose columns are found by name.
pub(super) fn evaluate_all(
    conditions: &[FilterCondition],
    batch: &RecordBatch,
) -> Result<BooleanArray> {
    let all = conjunction(conditions.iter().cloned());
    let all = reassign_expr_columns(all, batch.schema_ref())?;
    let answer = all.evaluate(batch)?.into_array(batch.num_rows())?;
    match answer.as_boolean_opt() {
        Some(bits) => Ok(bits.clone()),
        None => {
            internal_err!(
                "internal error: the condition {all} has the type {} instead of boolean; please report it",
                answer.data_type()
            )
        }
    }
}

/// Narrows `rows` to those for which all comparisons of `_row`, the index of the row in the file,
/// to a literal are true. Ignores other conditions.
pub(super) fn narrow_rows(conditions: &[FilterCondition], rows: Range<usize>) -> Range<usize> {
    let mut out = rows;
    for condition in conditions {
        let Some((op, value)) = find_row_comparison(condition) else { continue };
        // `at` clamps the literal: a negative one to 0, and one beyond `usize` to its maximum.
        let at = |v: i64| usize::try_from(v.max(0)).unwrap_or(usize::MAX);
        let after = at(value.saturating_add(1));
        let (from, to) = match op {
            Operator::Eq => (at(value), after),
            Operator::Lt => (0, at(value)),
            Operator::LtEq => (0, after),
            Operator::Gt => (after, usize::MAX),
            Operator::GtEq => (at(value), usize::MAX),
            _ => continue,
        };
        out.start = out.start.max(from).min(out.end);
        out.end = out.end.min(to).max(out.start);
    }
    out
}

/// Returns operator and integer of a comparison of `_row` with a literal, as if `_row` were on the
/// left: `>` and 5 for `5 < _row`. Returns `None` for any other condition.
fn find_row_comparison(condition: &FilterCondition) -> Option<(Operator, i64)> {
    let binary = condition.downcast_ref::<BinaryExpr>()?;
    let row = |e: &FilterCondition| e.downcast_ref::<Column>().is_some_and(|c| c.name() == ROW);
    let number = |e: &FilterCondition| match e.downcast_ref::<Literal>()?.value() {
        ScalarValue::Int64(value) => *value,
        _ => None,
    };
    if row(binary.left()) {
        Some((*binary.op(), number(binary.right())?))
    } else if row(binary.right()) {
        Some((binary.op().swap()?, number(binary.left())?))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use datafusion::physical_expr::expressions::{col, lit};

    use super::*;
    use arrow::datatypes::{Field, Schema};

    #[test]
    fn comparisons_narrow_the_rows() {
        let schema = Schema::new(vec![Field::new(ROW, DataType::Int64, false)]);
        let row = || col(ROW, &schema).unwrap();
        let binary = |l: FilterCondition, op, r: FilterCondition| -> FilterCondition {
            Arc::new(BinaryExpr::new(l, op, r))
        };
        let narrow = |conditions: &[FilterCondition]| super::narrow_rows(conditions, 10..90);
        assert_eq!(narrow(&[]), 10..90);
        assert_eq!(narrow(&[binary(row(), Operator::Eq, lit(17i64))]), 17..18);
        assert_eq!(narrow(&[binary(lit(17i64), Operator::Lt, row())]), 18..90);
        assert_eq!(
            narrow(&[
                binary(row(), Operator::GtEq, lit(20i64)),
                binary(row(), Operator::LtEq, lit(30i64))
            ]),
            20..31
        );
        assert!(narrow(&[binary(row(), Operator::Eq, lit(-3i64))]).is_empty());
        assert!(narrow(&[binary(row(), Operator::Gt, lit(i64::MAX))]).is_empty());
        assert!(narrow(&[binary(row(), Operator::Eq, lit(1000i64))]).is_empty());
        assert_eq!(narrow(&[binary(row(), Operator::NotEq, lit(17i64))]), 10..90);
    }
}
