//! The parts of MEDS data that each output format can hold.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};

use crate::array::leaf_type;
use crate::cli::command_failure::Outcome;
use crate::io::meds::{MedsReadOptions, MedsShard};
use crate::io::meds_torch::MedsFolder;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum MedsPart {
    /// The columns of events and of static measurements. In one row, the lists of events and the
    /// lists of static measurements differ in length, so these columns do not form one ragged
    /// table.
    All,
    /// Only the columns of events. In each row, their lists have the same lengths, as one ragged
    /// table requires.
    Events,
    /// Only the numeric columns of events. The column `code` has the integer token of each code,
    /// and columns of strings are omitted.
    Tokens,
}

impl MedsPart {
    pub(super) fn read(self, folder: &MedsFolder, shard: usize) -> Outcome<RecordBatch> {
        self.select_columns(&folder.read(shard, &MedsReadOptions::default())?)
    }

    fn select_columns(self, shard: &MedsShard) -> Outcome<RecordBatch> {
        if self == Self::All {
            return Ok(shard.to_batch()?);
        }
        let batch = shard.events.to_batch()?;
        if self == Self::Events {
            return Ok(batch);
        }
        let (fields, columns): (Vec<FieldRef>, Vec<_>) = batch
            .schema_ref()
            .fields()
            .iter()
            .zip(batch.columns())
            .filter_map(|(field, column)| Some((to_token_field(field)?, column.clone())))
            .unzip();
        let schema = Schema::new_with_metadata(fields, batch.schema_ref().metadata().clone());
        Ok(RecordBatch::try_new(schema.into(), columns)?)
    }
}

/// Returns the columns of a shard that are read for `part`. `schema` has all columns of the shard.
pub(super) fn select_part(schema: &SchemaRef, part: MedsPart) -> SchemaRef {
    if part == MedsPart::All {
        return schema.clone();
    }
    // The columns of events end at `static_code`, the first column of static measurements.
    let events = schema.fields().iter().take_while(|f| f.name() != "static_code");
    let fields: Vec<FieldRef> = match part {
        MedsPart::Tokens => events.filter_map(to_token_field).collect(),
        _ => events.cloned().collect(),
    };
    Schema::new_with_metadata(fields, schema.metadata().clone()).into()
}

fn to_token_field(field: &FieldRef) -> Option<FieldRef> {
    if field.name() == "code_id" {
        return Some(Arc::new(field.as_ref().clone().with_name("code")));
    }
    (field.name() != "code" && !has_strings(field.data_type())).then(|| field.clone())
}

fn has_strings(data_type: &DataType) -> bool {
    match leaf_type(data_type) {
        DataType::Dictionary(_, values) => has_strings(values),
        other => other.is_string() || other.is_binary() || other.is_nested(),
    }
}

pub(in crate::cli) fn describe_losses(schema: &SchemaRef, part: MedsPart) -> Vec<String> {
    let mut notes = Vec::new();
    if part != MedsPart::All && schema.field_with_name("static_code").is_ok() {
        notes.push("static facts are left out; .parquet and .arrow keep them".to_owned());
    }
    let events = schema.fields().iter().take_while(|f| f.name() != "static_code");
    let texts: Vec<&str> = events
        .filter(|f| has_strings(f.data_type()) && f.name() != "code")
        .map(|f| f.name().as_str())
        .collect();
    if part == MedsPart::Tokens && !texts.is_empty() {
        notes.push(format!("columns with strings are left out: {}", texts.join(", ")));
    }
    notes
}
