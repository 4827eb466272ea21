//! Rejects tensors that INSERT and UPDATE write to a column of tensors of another shape, and tokens
//! that they write to a column with tokens of another vocabulary. The types are equal if the
//! tensors have equally many values, so DataFusion would write the values, and the column would
//! show them in its own shape; tokens would be decoded as other codes.

use arrow::datatypes::{Field, FieldRef};
use datafusion::common::{Column, DFSchema, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};

use crate::functions::{SEVERAL_VOCABULARIES, differ_in_vocabulary};
use crate::io::meds::VOCABULARY_METADATA;
use crate::sql::workarounds::expressions::chosen_tokens::tag_chosen_tokens;

/// Returns an error if the plan of an INSERT or UPDATE, also below EXPLAIN, writes values with an
/// extension type to a column that has another one, or the same one with other parameters, or
/// tokens to a column of another vocabulary. Values without an extension type, such as lists, and
/// integers of no known vocabulary are written.
pub(in crate::sql::statement) fn check_written_tensors(plan: &LogicalPlan) -> Result<()> {
    let change = match plan {
        LogicalPlan::Explain(explain) => return check_written_tensors(&explain.plan),
        LogicalPlan::Analyze(analyze) => return check_written_tensors(&analyze.input),
        LogicalPlan::Dml(change) => change,
        _ => return Ok(()),
    };
    // CASE and `coalesce` have no vocabulary before their analysis.
    let input = tag_chosen_tokens(change.input.as_ref().clone())?;
    let LogicalPlan::Projection(values) = &input else { return Ok(()) };
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
        let tokens = list_written_tokens(&named.expr, &values.input);
        if let Some(found) = tokens.iter().find(|found| are_other_tokens(found, column)) {
            return plan_err!(
                "the column '{}' of {} has tokens of the vocabulary {}, but gets tokens of {}; convert them, as in ragged_encode(ragged_decode(x, 'FROM/codes.parquet'), 'TO/codes.parquet')",
                named.name,
                change.table_name,
                find_vocabulary(column),
                describe_vocabulary(found)
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

/// Returns the fields of the values as [`list_written_fields`] does, but for a UNION those of its
/// inputs, because a UNION of tokens of several vocabularies names none before its analysis.
fn list_written_tokens(value: &Expr, input: &LogicalPlan) -> Vec<FieldRef> {
    let (Expr::Column(column), LogicalPlan::Union(union)) = (remove_cast(value), input) else {
        return list_written_fields(value, input);
    };
    let Ok(at) = union.schema.index_of_column(column) else { return Vec::new() };
    let tokens = union.inputs.iter().flat_map(|input| {
        let column = Column::from(input.schema().qualified_field(at));
        list_written_tokens(&Expr::Column(column), input)
    });
    tokens.collect()
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

/// Whether tokens are of another vocabulary than those of a column. A column that already has
/// tokens of several vocabularies takes all.
fn are_other_tokens(found: &Field, column: &Field) -> bool {
    differ_in_vocabulary(found, column) && find_vocabulary(column) != SEVERAL_VOCABULARIES
}

fn find_vocabulary(tokens: &Field) -> &str {
    tokens.metadata().get(VOCABULARY_METADATA).map_or("", String::as_str)
}

fn describe_vocabulary(tokens: &Field) -> String {
    match find_vocabulary(tokens) {
        SEVERAL_VOCABULARIES => "several vocabularies".to_owned(),
        one => format!("the vocabulary {one}"),
    }
}
