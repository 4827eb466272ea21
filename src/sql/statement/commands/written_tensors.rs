//! Rejects tensors that INSERT and UPDATE write to a column of tensors of another shape. The types
//! are equal if the tensors have equally many values, so DataFusion would write the values, and the
//! column would show them in its own shape.

use arrow::datatypes::{Field, FieldRef};
use datafusion::common::{DFSchema, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};

/// Returns an error if the plan of an INSERT or UPDATE, also below EXPLAIN, writes values with an
/// extension type to a column that has another one, or the same one with other parameters. Values
/// without an extension type, such as lists, are written.
pub(in crate::sql::statement) fn check_written_tensors(plan: &LogicalPlan) -> Result<()> {
    let change = match plan {
        LogicalPlan::Explain(explain) => return check_written_tensors(&explain.plan),
        LogicalPlan::Analyze(analyze) => return check_written_tensors(&analyze.input),
        LogicalPlan::Dml(change) => change,
        _ => return Ok(()),
    };
    let LogicalPlan::Projection(values) = change.input.as_ref() else { return Ok(()) };
    let columns = change.target.schema();
    for value in &values.expr {
        let Expr::Alias(named) = value else { continue };
        let Ok(column) = columns.field_with_name(&named.name) else { continue };
        let written = list_written_fields(&named.expr, &values.input);
        if let Some(found) = written.iter().find(|found| is_other_tensor(found, column)) {
            return plan_err!(
                "the column '{}' of {} has {}, but gets {}, whose values would be read in the shape of the column; write tensors of this shape, or flat lists",
                named.name,
                change.table_name,
                describe_tensor(column),
                describe_tensor(found)
            );
        }
    }
    Ok(())
}

/// Returns the fields of the values that an expression over `input` writes: one for each row of
/// VALUES, whose own schema is that of the table, and otherwise one. Leaves out expressions without
/// a type, which the planner reports.
fn list_written_fields(value: &Expr, input: &LogicalPlan) -> Vec<FieldRef> {
    let find_field = |value: &Expr, schema: &DFSchema| {
        let (_, field) = remove_cast(value).to_field(schema).ok()?;
        Some(field)
    };
    match (remove_cast(value), input) {
        (Expr::Column(column), LogicalPlan::Values(rows)) => {
            let Ok(at) = rows.schema.index_of_column(column) else { return Vec::new() };
            let none = DFSchema::empty();
            rows.values.iter().filter_map(|cells| find_field(cells.get(at)?, &none)).collect()
        }
        (value, input) => find_field(value, input.schema()).into_iter().collect(),
    }
}

fn remove_cast(value: &Expr) -> &Expr {
    match value {
        Expr::Cast(cast) => &cast.expr,
        other => other,
    }
}

fn is_other_tensor(found: &Field, column: &Field) -> bool {
    let tag = |field: &Field| {
        let parts = [field.extension_type_name(), field.extension_type_metadata()];
        parts.map(|part| part.map(str::to_owned))
    };
    found.extension_type_name().is_some()
        && column.extension_type_name().is_some()
        && tag(found) != tag(column)
}

/// Returns words such as `arrow.fixed_shape_tensor {"shape":[2,3]}` for the extension type of a
/// field. A UNION of tensors of several shapes has no parameters before its analysis.
fn describe_tensor(field: &Field) -> String {
    let name = field.extension_type_name().unwrap_or_default();
    match field.extension_type_metadata() {
        Some(parameters) => format!("{name} {parameters}"),
        None => format!("{name} of several shapes"),
    }
}
