//! What of MEDS data other formats can hold.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};

use crate::array::leaf_type;
use crate::cli::error::Outcome;
use crate::io::meds::{MedsOptions, MedsShard};
use crate::io::meds_torch::MedsFolder;

/// Columns taken from a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Part {
    /// Events and static facts, which have lists of their own.
    All,
    /// Events: one ragged table.
    Events,
    /// Events as numbers: `code` is the token, texts are left out.
    Tokens,
}

impl Part {
    pub(super) fn read(self, folder: &MedsFolder, shard: usize) -> Outcome<RecordBatch> {
        self.of(&folder.read(shard, &MedsOptions::default())?)
    }

    fn of(self, shard: &MedsShard) -> Outcome<RecordBatch> {
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
            .filter_map(|(field, column)| Some((token_field(field)?, column.clone())))
            .unzip();
        let schema = Schema::new_with_metadata(fields, batch.schema_ref().metadata().clone());
        Ok(RecordBatch::try_new(schema.into(), columns)?)
    }
}

/// The columns that a part of `schema`, the whole, has.
pub(super) fn part_schema(schema: &SchemaRef, part: Part) -> SchemaRef {
    if part == Part::All {
        return schema.clone();
    }
    // Those of events come first.
    let events = schema.fields().iter().take_while(|f| f.name() != "static_code");
    let fields: Vec<FieldRef> = match part {
        Part::Tokens => events.filter_map(token_field).collect(),
        _ => events.cloned().collect(),
    };
    Schema::new_with_metadata(fields, schema.metadata().clone()).into()
}

fn token_field(field: &FieldRef) -> Option<FieldRef> {
    if field.name() == "code_id" {
        return Some(Arc::new(field.as_ref().clone().with_name("code")));
    }
    (field.name() != "code" && !is_text(field.data_type())).then(|| field.clone())
}

fn is_text(data_type: &DataType) -> bool {
    match leaf_type(data_type) {
        DataType::Dictionary(_, values) => is_text(values),
        other => other.is_string() || other.is_binary() || other.is_nested(),
    }
}

/// What is lost by taking a part, said to the user.
pub(in crate::cli) fn losses(schema: &SchemaRef, part: Part) -> Vec<String> {
    let mut notes = Vec::new();
    if part != Part::All && schema.field_with_name("static_code").is_ok() {
        notes.push("static facts are left out; .parquet and .arrow keep them".to_owned());
    }
    let events = schema.fields().iter().take_while(|f| f.name() != "static_code");
    let texts: Vec<&str> = events
        .filter(|f| is_text(f.data_type()) && f.name() != "code")
        .map(|f| f.name().as_str())
        .collect();
    if part == Part::Tokens && !texts.is_empty() {
        notes.push(format!("text is left out: {}", texts.join(", ")));
    }
    notes
}
