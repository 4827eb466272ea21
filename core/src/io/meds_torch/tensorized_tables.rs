use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, Float32Array, Int64Array, TimestampMicrosecondArray, UInt32Array};

use super::chunk_encoder::{ChunkEncoder, list_part_names};
use super::cohort_codes::CohortCodes;
use super::parallel::run_in_order;
use super::shard_builder::CohortShardBuilder;
use super::tensorized_cohort::{CohortTables, EVENT_AXES, STATIC_AXES};
use super::{TensorizeOptions, read_split_name};
use crate::array::Offsets;
use crate::error::Result;
use crate::io::meds::{MedsDataset, SubjectSplits};
use crate::table::RaggedTable;

#[derive(Debug, Default)]
pub(crate) struct TensorizedTables {
    /// The shards of the selected split, or all, in the order of the data set.
    pub(crate) shards: Vec<CohortTables>,
    /// Names of all shards, including the shards of other splits.
    pub(crate) names: Vec<String>,
    /// For each code that is not in the vocabulary: its number of measurements in the files that
    /// were read.
    pub(crate) unknown: BTreeMap<String, u64>,
}

/// Builds in memory the tables that a reader of the files of [`tensorize`](super::tensorize) would
/// return. Returns the same errors, except errors about the output folder.
pub(crate) fn tensorize_in_memory(
    dataset: &MedsDataset,
    split: Option<&str>,
    options: &TensorizeOptions,
) -> Result<TensorizedTables> {
    let splits = SubjectSplits::read_splits(dataset.root())?;
    let sources = dataset.sources();
    let names = list_part_names(dataset, &splits)?;
    let codes = CohortCodes::build_codes(dataset, &splits, options, options.jobs())?;
    let wanted = |name: &String| split.is_none_or(|split| read_split_name(name) == split);
    let read: Vec<usize> = (0..sources.len()).filter(|i| names[*i].iter().any(wanted)).collect();
    let mut out = TensorizedTables { names: names.concat(), ..TensorizedTables::default() };
    let work = |i: usize| {
        let i = read[i];
        let encoder = ChunkEncoder { codes: &codes, splits: &splits, unknown: options.unknown };
        let shard = encoder.encode_shard(&sources[i].1, &names[i])?;
        shard.check_subjects(dataset, i, options)?;
        let parts = shard.parts.into_iter().filter(|(name, _)| wanted(name));
        let tables =
            parts.map(|(name, part)| part.into_tables(name)).collect::<Result<Vec<_>>>()?;
        Ok((tables, shard.unknown))
    };
    run_in_order(read.len(), options.jobs(), work, |(tables, unknown)| {
        out.shards.extend(tables);
        for (code, count) in unknown {
            *out.unknown.entry(code).or_default() += count;
        }
        Ok(())
    })?;
    Ok(out)
}

impl CohortShardBuilder {
    fn into_tables(self, name: String) -> Result<CohortTables> {
        let rows = self.subjects.len();
        let subjects = Arc::new(Int64Array::from(self.subjects));
        let events = RaggedTable::builder()
            .names(EVENT_AXES)
            .rows(rows)
            .layout(make_offsets_from_ends(&self.event_ends)?.into())
            .layout(make_offsets_from_ends(&self.measurement_ends)?.into())
            .column("subject_id", 0, Arc::clone(&subjects) as Arc<dyn Array>)
            .column("time", 1, Arc::new(TimestampMicrosecondArray::from(self.times)))
            .column("time_delta_days", 1, Arc::new(Float32Array::from(self.deltas)))
            .column("code", 2, Arc::new(Int64Array::from(self.codes)))
            .column("numeric_value", 2, Arc::new(Float32Array::from(self.values)))
            .build()?;
        let values = Float32Array::from(self.static_values);
        let statics = RaggedTable::builder()
            .names(STATIC_AXES)
            .rows(rows)
            .layout(make_offsets_from_ends(&self.static_ends)?.into())
            .column("subject_id", 0, subjects)
            .column("static_code", 1, Arc::new(UInt32Array::from(self.static_codes)))
            .column("static_numeric_value", 1, Arc::new(values))
            .build()?;
        Ok(CohortTables { name, events, statics })
    }
}

fn make_offsets_from_ends(ends: &[i64]) -> Result<Offsets> {
    let starts = std::iter::once(&0).chain(ends);
    Offsets::from_lengths(starts.zip(ends).map(|(a, b)| usize::try_from(b - a).unwrap_or(0)))
}
