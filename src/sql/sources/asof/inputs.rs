//! [`AsofInputs`]: the columns, or only list lengths, that expressions over `meds_asof` need.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt64Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};

use crate::array::list_depth;
use crate::functions::{ListPart, find_list_part};
use crate::io::meds::AsOf;
use crate::sql::sources::meds::is_static;
use serrate_core::internal::build_record_batch;
use serrate_core::internal::meds::{AsOfRanges, AsOfView, AsOfViewStep};

#[derive(Clone, Debug, PartialEq)]
enum AsofInput {
    Label(usize),
    /// The parts of a column's lists that calls such as `ragged_head` select, and their type.
    Lists(AsOfView, DataType),
    /// For each row, the length of its outermost list.
    Lengths(AsOfView),
    /// For each row, the number of leaves (innermost list elements) that are not NULL.
    Counts(AsOfView),
}

impl AsofInput {
    fn view(&self) -> Option<&AsOfView> {
        match self {
            Self::Label(_) => None,
            Self::Lists(view, _) | Self::Lengths(view) | Self::Counts(view) => Some(view),
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct AsofInputs {
    inputs: Vec<AsofInput>,
    fields: Vec<FieldRef>,
}

impl AsofInputs {
    /// Adds the columns that an expression over the table needs, and returns the expression
    /// rewritten for these columns. The first `labels` columns of the table come from the labels.
    pub(super) fn add(
        &mut self,
        expression: &Arc<dyn PhysicalExpr>,
        table: &Schema,
        labels: usize,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        let rewritten = Arc::clone(expression).transform_down(|node| {
            if let Some(found) = find_input(&node, table, labels)? {
                let column = self.add_column(found.0, found.1);
                return Ok(Transformed::new(column, true, TreeNodeRecursion::Jump));
            }
            self.slice_to_element(node, table, labels)
        })?;
        Ok(rewritten.data)
    }

    fn add_column(&mut self, input: AsofInput, field: FieldRef) -> Arc<dyn PhysicalExpr> {
        let known = self.inputs.iter().position(|i| *i == input);
        let index = known.unwrap_or_else(|| {
            let name = format!("{}#{}", field.name(), self.inputs.len());
            self.fields.push(Arc::new(field.as_ref().clone().with_name(name)));
            self.inputs.push(input);
            self.inputs.len() - 1
        });
        Arc::new(Column::new(self.fields[index].name(), index))
    }

    /// Replaces the list `x` of a call such as `ragged_at(x, 2)` with its first three elements, so
    /// that the scan copies few elements. For `ragged_at(x, -2)`, replaces it with its last two
    /// elements.
    fn slice_to_element(
        &mut self,
        node: Arc<dyn PhysicalExpr>,
        table: &Schema,
        labels: usize,
    ) -> Result<Transformed<Arc<dyn PhysicalExpr>>> {
        let Some(call) = node.downcast_ref::<ScalarFunctionExpr>() else {
            return Ok(Transformed::no(node));
        };
        let ListPart::Element(from) = find_list_part(call.fun()) else {
            return Ok(Transformed::no(node));
        };
        let [list, first, ..] = call.args() else { return Ok(Transformed::no(node)) };
        let (Some(first), Some(view)) =
            (find_literal_integer(first), match_view(list, table, labels)?)
        else {
            return Ok(Transformed::no(node));
        };
        let (Some(first), (view, field)) = (first, view) else { return Ok(Transformed::no(node)) };
        let step = match first {
            first if first < 0 => AsOfViewStep::Slice(Some(first), None),
            first => AsOfViewStep::Slice(None, Some(first.saturating_add(1 - from))),
        };
        let lists = AsofInput::Lists(view.add_step(step), field.data_type().clone());
        let mut children: Vec<Arc<dyn PhysicalExpr>> = call.args().to_vec();
        children[0] = self.add_column(lists, field);
        for child in children.iter_mut().skip(1) {
            *child = self.add(child, table, labels)?;
        }
        let rebuilt = node.with_new_children(children)?;
        Ok(Transformed::new(rebuilt, true, TreeNodeRecursion::Jump))
    }

    pub(super) fn schema(&self) -> SchemaRef {
        Arc::new(Schema::new(self.fields.clone()))
    }

    pub(super) fn has_lists(&self) -> bool {
        self.inputs.iter().any(|i| i.view().is_some())
    }

    /// Returns, for each needed list column, whether it has static facts (facts without a time),
    /// and its name.
    pub(super) fn columns(&self) -> impl Iterator<Item = (bool, &str)> {
        self.inputs.iter().filter_map(|i| i.view()).map(|v| (v.statics, v.column.as_str()))
    }

    pub(super) fn find_copied_lists<'a>(
        &'a self,
        rows: &'a AsOf,
    ) -> crate::Result<Vec<AsOfRanges<'a>>> {
        self.inputs
            .iter()
            .filter_map(|i| match i {
                AsofInput::Lists(view, _) => Some(view.of(rows)),
                _ => None,
            })
            .collect()
    }

    pub(super) fn build_inputs(&self, rows: &AsOf, labels: &[usize]) -> Result<RecordBatch> {
        let positions: UInt64Array = labels.iter().map(|l| *l as u64).collect();
        let whole = rows.labels().to_batch()?;
        let columns = self
            .inputs
            .iter()
            .zip(&self.fields)
            .map(|(input, field)| -> Result<ArrayRef> {
                Ok(match input {
                    AsofInput::Label(i) => take_label(whole.column(*i), labels, &positions)?,
                    AsofInput::Lists(view, _) => {
                        view.of(rows)?.gather_lists(labels)?.to_arrow_as(field.data_type())?
                    }
                    AsofInput::Lengths(view) => view.of(rows)?.lengths(labels),
                    AsofInput::Counts(view) => view.of(rows)?.counts(labels),
                })
            })
            .collect::<Result<_>>()?;
        Ok(build_record_batch(self.schema(), columns, labels.len())?)
    }
}

/// Returns the values of a column for the labels at the ascending indices `labels`. `positions` has
/// the same indices as an array. Copies no values if the indices are consecutive.
fn take_label(values: &ArrayRef, labels: &[usize], positions: &UInt64Array) -> Result<ArrayRef> {
    match labels {
        [first, .., last] if last - first + 1 == labels.len() => {
            Ok(values.slice(*first, labels.len()))
        }
        _ => Ok(take(values, positions, None)?),
    }
}

/// Returns the input that replaces a node of an expression. Returns `None` unless the node is a
/// column of the labels, a list (possibly sliced), or the lengths or counts of such lists.
fn find_input(
    node: &Arc<dyn PhysicalExpr>,
    table: &Schema,
    labels: usize,
) -> Result<Option<(AsofInput, FieldRef)>> {
    if let Some(column) = node.downcast_ref::<Column>()
        && column.index() < labels
    {
        let field = Arc::new(table.field(column.index()).clone());
        return Ok(Some((AsofInput::Label(column.index()), field)));
    }
    if let Some((view, field)) = match_view(node, table, labels)? {
        return Ok(Some((AsofInput::Lists(view, field.data_type().clone()), field)));
    }
    let Some(call) = node.downcast_ref::<ScalarFunctionExpr>() else { return Ok(None) };
    let [lists, rest @ ..] = call.args() else { return Ok(None) };
    let input: fn(AsOfView) -> AsofInput = match (find_list_part(call.fun()), rest) {
        (ListPart::Length, []) => AsofInput::Lengths,
        (ListPart::Length, [axis]) if find_literal_integer(axis) == Some(Some(1)) => {
            AsofInput::Lengths
        }
        (ListPart::Count, []) => AsofInput::Counts,
        _ => return Ok(None),
    };
    let Some((view, _)) = match_view(lists, table, labels)? else { return Ok(None) };
    let field = node.return_field(table)?;
    Ok((*field.data_type() == DataType::Int64).then(|| (input(view), field)))
}

/// Returns the list column that an expression reads, with the steps that select its elements, and
/// the field of the result. Returns `None` unless the expression is a list column, or calls over a
/// list column that only change which elements are read (see [`make_range_step`]).
fn match_view(
    node: &Arc<dyn PhysicalExpr>,
    table: &Schema,
    labels: usize,
) -> Result<Option<(AsOfView, FieldRef)>> {
    if let Some(column) = node.downcast_ref::<Column>() {
        let field = table.field(column.index());
        if column.index() < labels || list_depth(field.data_type()) == 0 {
            return Ok(None);
        }
        let statics = is_static(table, column.index());
        let view = AsOfView { statics, column: field.name().clone(), steps: Vec::new() };
        return Ok(Some((view, Arc::new(field.clone()))));
    }
    let Some(call) = node.downcast_ref::<ScalarFunctionExpr>() else { return Ok(None) };
    let [lists, rest @ ..] = call.args() else { return Ok(None) };
    let Some(step) = make_range_step(find_list_part(call.fun()), rest) else { return Ok(None) };
    let Some((view, _)) = match_view(lists, table, labels)? else { return Ok(None) };
    Ok(Some((view.add_step(step), node.return_field(table)?)))
}

/// Returns how a call such as `ragged_head(x, 3)` changes the range of a list, or `None` if it
/// reads values or its arguments vary by row.
fn make_range_step(part: ListPart, rest: &[Arc<dyn PhysicalExpr>]) -> Option<AsOfViewStep> {
    let outermost = |axis: &Arc<dyn PhysicalExpr>| find_literal_integer(axis) == Some(Some(1));
    match (part, rest) {
        (ListPart::Leaves, []) => Some(AsOfViewStep::Flatten),
        (ListPart::First, [n]) => Some(make_head_step(find_literal_integer(n)?)),
        (ListPart::First, [n, axis]) if outermost(axis) => {
            Some(make_head_step(find_literal_integer(n)?))
        }
        (ListPart::Last, [n]) => Some(make_tail_step(find_literal_integer(n)?)),
        (ListPart::Last, [n, axis]) if outermost(axis) => {
            Some(make_tail_step(find_literal_integer(n)?))
        }
        (ListPart::Range, [start, stop]) => {
            Some(AsOfViewStep::Slice(find_literal_integer(start)?, find_literal_integer(stop)?))
        }
        (ListPart::Range, [start, stop, by])
            if matches!(find_literal_integer(by)?, None | Some(1)) =>
        {
            Some(AsOfViewStep::Slice(find_literal_integer(start)?, find_literal_integer(stop)?))
        }
        _ => None,
    }
}

fn make_head_step(n: Option<i64>) -> AsOfViewStep {
    AsOfViewStep::Slice(None, n)
}

fn make_tail_step(n: Option<i64>) -> AsOfViewStep {
    match n {
        // `ragged_tail(x, 0)` is empty. A slice from `-0` would be the whole list.
        Some(0) => AsOfViewStep::Slice(Some(i64::MAX), None),
        n => AsOfViewStep::Slice(n.map(i64::saturating_neg), None),
    }
}

fn find_literal_integer(e: &Arc<dyn PhysicalExpr>) -> Option<Option<i64>> {
    let value = e.downcast_ref::<Literal>()?.value();
    if value.is_null() {
        return Some(None);
    }
    match value.data_type().is_integer().then(|| value.cast_to(&DataType::Int64))? {
        Ok(ScalarValue::Int64(Some(n))) => Some(Some(n)),
        _ => None,
    }
}
