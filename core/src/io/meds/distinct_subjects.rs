use std::collections::HashMap;

use arrow::array::AsArray;
use arrow::datatypes::{DataType, Int64Type};

use super::file::MedsFile;
use crate::error::Result;

/// Maximum number of rows whose subject ids are read; reading this many takes about a second.
const MOST_ROWS: usize = 1 << 28;

/// Maximum number of distinct subject ids that are held in memory; this many take about 100 MB.
const MOST_SUBJECTS: usize = 1 << 22;

const BATCH_ROWS: usize = 1 << 16;

/// Returns whether no subject is in two shards; false, too, if they are unreadable or too large.
pub(super) fn has_distinct_subjects(shards: &[(String, MedsFile)]) -> bool {
    has_disjoint_bounds(shards) || has_distinct_ids(shards).unwrap_or(false)
}

/// Returns whether the ranges of the subject ids of the shards do not overlap, according to the
/// least and greatest ids in the footers. Returns false, too, if a footer lacks these.
fn has_disjoint_bounds(shards: &[(String, MedsFile)]) -> bool {
    let mut bounds = Vec::with_capacity(shards.len());
    for (_, source) in shards {
        let Some(groups) = source.list_bounds("subject_id") else { return false };
        let least = groups.iter().map(|(least, _)| *least).min();
        let most = groups.iter().map(|(_, most)| *most).max();
        bounds.extend(least.zip(most));
    }
    bounds.sort_unstable();
    bounds.iter().all(|(least, most)| least <= most) && bounds.is_sorted_by(|a, b| a.1 < b.0)
}

/// Reads the ids of all shards, and returns whether none is in two shards. Returns false, too, if
/// there are more than [`MOST_ROWS`] rows or [`MOST_SUBJECTS`] ids.
fn has_distinct_ids(shards: &[(String, MedsFile)]) -> Result<bool> {
    let mut rows = 0usize;
    for (_, source) in shards {
        rows = rows.saturating_add(source.rows()?);
    }
    if rows > MOST_ROWS {
        return Ok(false);
    }
    let mut shard_of = HashMap::new();
    for (shard, (_, source)) in shards.iter().enumerate() {
        let mut last = None;
        for batch in source.read_batches(&["subject_id"], None, BATCH_ROWS)? {
            let batch = batch?;
            let column = source.require_column(&batch, "subject_id")?;
            source.check_no_nulls("subject_id", column, 0)?;
            let ids = source.cast_column("subject_id", column, &DataType::Int64)?;
            for id in ids.as_primitive::<Int64Type>().values() {
                if last == Some(*id) {
                    continue;
                }
                last = Some(*id);
                if *shard_of.entry(*id).or_insert(shard) != shard || shard_of.len() > MOST_SUBJECTS
                {
                    return Ok(false);
                }
            }
        }
    }
    Ok(true)
}
