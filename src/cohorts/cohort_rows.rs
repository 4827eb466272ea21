//! [`CohortRows`]: the realizations of a cohort (triggers that satisfy all criteria) as columns.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, Int64Array, RecordBatch, StringArray, StructArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use serrate_core::internal::build_record_batch;

use super::boundary::WindowSide;
use super::criteria::{CohortCriteria, EdgeCount, SUMMARY_FIELDS};
use crate::error::Result;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CohortColumn {
    Subject,
    /// Time of the prediction.
    IndexTimestamp,
    /// The label: how often the predicate that a window names as its `label` occurs in the window.
    Label,
    Trigger,
    /// A struct about one range of time between two window ends, the edge with this index in
    /// `CohortCriteria::edges`: the name of the edge (such as `input.end`), the two ends of the
    /// range, and the count of each predicate in the range.
    Summary(usize),
}

/// A number that is stored for each realization (a trigger that satisfies all criteria). The result
/// columns are built from these numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RealizationSlot {
    Subject,
    Trigger,
    /// The earlier or the later end of the range of time of the edge with this index in
    /// `CohortCriteria::edges`.
    End(usize, WindowSide),
    Count(EdgeCount),
}

const TIME: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);

impl CohortCriteria {
    /// Returns the columns of the result for these criteria, in the order in which ACES writes
    /// them.
    pub(crate) fn list_result_columns(&self) -> Vec<CohortColumn> {
        let mut columns = vec![CohortColumn::Subject];
        columns.extend(self.has_index_timestamp().then_some(CohortColumn::IndexTimestamp));
        columns.extend(self.has_label().then_some(CohortColumn::Label));
        columns.push(CohortColumn::Trigger);
        columns.extend((0..self.edges.len()).map(CohortColumn::Summary));
        columns
    }

    pub(crate) fn make_result_schema(&self, columns: &[CohortColumn]) -> SchemaRef {
        let field = |column: &CohortColumn| match column {
            CohortColumn::Subject => Field::new("subject_id", DataType::Int64, false),
            CohortColumn::IndexTimestamp => Field::new("index_timestamp", TIME, false),
            CohortColumn::Label => Field::new("label", DataType::Int64, false),
            CohortColumn::Trigger => Field::new("trigger", TIME, false),
            CohortColumn::Summary(edge) => {
                let name = format!("{}_summary", self.edges[*edge].name);
                Field::new(name, DataType::Struct(self.list_summary_fields()), false)
            }
        };
        Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
    }

    fn list_summary_fields(&self) -> Fields {
        let [name, start, end] = SUMMARY_FIELDS;
        let mut fields = vec![
            Field::new(name, DataType::Utf8, false),
            Field::new(start, TIME, false),
            Field::new(end, TIME, false),
        ];
        let counts = self.list_counted_columns();
        fields.extend(counts.map(|(_, c)| Field::new(&c.name, DataType::Int64, false)));
        fields.into()
    }

    /// Returns which numbers of a realization the result column `column` is built from: one number
    /// for most columns. A struct has one number for each field after `window_name`, in the order
    /// of the fields.
    fn list_column_slots(&self, column: CohortColumn) -> Vec<RealizationSlot> {
        match column {
            CohortColumn::Subject => vec![RealizationSlot::Subject],
            CohortColumn::Trigger => vec![RealizationSlot::Trigger],
            CohortColumn::IndexTimestamp => self
                .index_timestamp
                .map(|(edge, side)| RealizationSlot::End(edge, side))
                .into_iter()
                .collect(),
            CohortColumn::Label => self.label.map(RealizationSlot::Count).into_iter().collect(),
            CohortColumn::Summary(edge) => {
                let mut slots = vec![
                    RealizationSlot::End(edge, WindowSide::Start),
                    RealizationSlot::End(edge, WindowSide::End),
                ];
                slots.extend(
                    self.list_counted_columns()
                        .map(|(column, _)| RealizationSlot::Count(EdgeCount { edge, column })),
                );
                slots
            }
        }
    }
}

/// The realizations of a cohort: the triggers that satisfy all criteria. For each of `slots`,
/// `values` has a vector with one integer per realization.
#[derive(Clone, Debug)]
pub(crate) struct CohortRows {
    pub(super) slots: Vec<RealizationSlot>,
    pub(super) values: Vec<Vec<i64>>,
    pub(super) rows: usize,
}

impl CohortRows {
    pub(crate) fn new(criteria: &CohortCriteria, columns: &[CohortColumn]) -> Self {
        let mut slots = Vec::new();
        for slot in columns.iter().flat_map(|column| criteria.list_column_slots(*column)) {
            if !slots.contains(&slot) {
                slots.push(slot);
            }
        }
        let values = vec![Vec::new(); slots.len()];
        Self { slots, values, rows: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.rows
    }

    pub(crate) fn extend(&mut self, other: Self) {
        for (own, other) in self.values.iter_mut().zip(other.values) {
            own.extend(other);
        }
        self.rows += other.rows;
    }

    /// Returns the rows as a batch of `columns`, which must be among the columns given to
    /// [`new`](Self::new).
    pub(crate) fn to_batch(
        &self,
        criteria: &CohortCriteria,
        columns: &[CohortColumn],
    ) -> Result<RecordBatch> {
        let values = |slot: RealizationSlot| -> Vec<i64> {
            let at = self.slots.iter().position(|own| *own == slot);
            at.and_then(|at| self.values.get(at)).cloned().unwrap_or_default()
        };
        let array = |slot: RealizationSlot| -> ArrayRef {
            match slot {
                RealizationSlot::Subject | RealizationSlot::Count(..) => {
                    Arc::new(Int64Array::from(values(slot)))
                }
                RealizationSlot::Trigger | RealizationSlot::End(..) => {
                    Arc::new(TimestampMicrosecondArray::from(values(slot)))
                }
            }
        };
        let arrays = columns
            .iter()
            .map(|column| -> Result<ArrayRef> {
                let slots = criteria.list_column_slots(*column);
                match column {
                    CohortColumn::Summary(edge) => {
                        let name = criteria.edges[*edge].name.as_str();
                        let names = StringArray::from_iter_values(vec![name; self.rows]);
                        let mut arrays: Vec<ArrayRef> = vec![Arc::new(names)];
                        arrays.extend(slots.into_iter().map(array));
                        Ok(Arc::new(StructArray::try_new(
                            criteria.list_summary_fields(),
                            arrays,
                            None,
                        )?))
                    }
                    _ => Ok(slots.first().map_or_else(
                        || Arc::new(Int64Array::from(Vec::<i64>::new())) as ArrayRef,
                        |slot| array(*slot),
                    )),
                }
            })
            .collect::<Result<_>>()?;
        let schema = criteria.make_result_schema(columns);
        Ok(build_record_batch(schema, arrays, self.rows)?)
    }
}
