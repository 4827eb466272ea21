//! Divides row groups among partitions by rows.

use std::ops::Range;
use std::sync::Arc;

use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNode;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::{
    ParquetAccessPlan, ParquetRowSelection, RowGroupAccess,
};
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig, FileScanConfigBuilder};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::DynamicFilterPhysicalExpr;
use parquet::arrow::arrow_reader::{RowSelection, RowSelector};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use serrate_core::internal::parquet::find_chunk_bytes;

/// Replaces a file's byte range with the rows to read (a [`ParquetAccessPlan`]). Assigns rows to
/// byte ranges as if all rows of a row group had the same size.
///
/// DataFusion assigns a row group to the byte range in which it starts. Here, the rows of a row
/// group are divided if its list columns have an offset index, so that reads can begin in the
/// middle. A file stays unchanged if `filter` has a dynamic filter, which may drop row groups
/// later.
pub(super) fn cut_by_rows(
    mut file: PartitionedFile,
    metadata: &ParquetMetaData,
    roots: &[usize],
    filter: Option<&Arc<dyn PhysicalExpr>>,
) -> PartitionedFile {
    let dynamic = |e: &Arc<dyn PhysicalExpr>| {
        e.exists(|e| Ok(e.downcast_ref::<DynamicFilterPhysicalExpr>().is_some())).unwrap_or(true)
    };
    let planned = file.extension::<ParquetAccessPlan>().is_some()
        || file.extension::<ParquetRowSelection>().is_some();
    let Some(range) = file.range.as_ref() else { return file };
    let (Ok(start), Ok(end)) = (u64::try_from(range.start), u64::try_from(range.end)) else {
        return file;
    };
    if planned || filter.is_some_and(dynamic) {
        return file;
    }
    let schema = metadata.file_metadata().schema_descr();
    let wanted = |column: &usize| roots.contains(&schema.get_column_root_idx(*column));
    let leaves: Vec<usize> = (0..schema.num_columns()).filter(wanted).collect();
    let Some(access) = metadata
        .row_groups()
        .iter()
        .map(|group| {
            let indexed = leaves.iter().all(|leaf| {
                let chunk = group.columns().get(*leaf);
                chunk.is_some_and(|chunk| chunk.offset_index_offset().is_some())
            });
            make_row_access(group, start..end, indexed)
        })
        .collect::<Option<Vec<_>>>()
    else {
        // The byte position of a row group is invalid. The reader reports the error.
        return file;
    };
    file.range = None;
    file.with_extension(ParquetAccessPlan::new(access))
}

/// Returns the rows of a row group that belong to the byte range `bytes`: a part of them if the
/// list columns have an offset index (`indexed`), so that reads can begin in the middle, else all
/// or none. Returns `None` if the position of the row group in the file is invalid.
fn make_row_access(
    group: &RowGroupMetaData,
    bytes: Range<u64>,
    indexed: bool,
) -> Option<RowGroupAccess> {
    let rows = usize::try_from(group.num_rows()).ok()?;
    let (mut start, mut end) = (u64::MAX, 0);
    for chunk in group.columns() {
        let chunk_bytes = find_chunk_bytes(chunk)?;
        start = start.min(chunk_bytes.start);
        end = end.max(chunk_bytes.end);
    }
    let first = find_chunk_bytes(group.columns().first()?)?.start;
    if !indexed || start >= end || rows == 0 {
        let held = bytes.contains(&first);
        return Some(if held { RowGroupAccess::Scan } else { RowGroupAccess::Skip });
    }
    // Returns the first row at or after `byte`. The position of row r is start + r * size / rows.
    let from = |byte: u64| {
        let scaled = u128::from(byte.saturating_sub(start)).saturating_mul(rows as u128);
        let row = scaled.div_ceil(u128::from(end - start));
        usize::try_from(row).unwrap_or(rows).min(rows)
    };
    let (skipped, stop) = (from(bytes.start), from(bytes.end));
    Some(match stop.saturating_sub(skipped) {
        0 => RowGroupAccess::Skip,
        all if all == rows => RowGroupAccess::Scan,
        some => RowGroupAccess::Selection(select_rows(skipped..skipped + some, rows)),
    })
}

/// The rows of a file that remain after OFFSET and LIMIT, for display in the plan.
#[derive(Clone, Debug)]
struct RowWindow(Range<usize>);

/// Returns the range of rows to read for each file that a scan reads only in part.
pub(super) fn find_file_windows(config: &FileScanConfig) -> Vec<Range<usize>> {
    let files = config.file_groups.iter().flat_map(FileGroup::iter);
    files.filter_map(|file| Some(file.extension::<RowWindow>()?.0.clone())).collect()
}

fn select_rows(chosen: Range<usize>, rows: usize) -> RowSelection {
    RowSelection::from(vec![
        RowSelector::skip(chosen.start),
        RowSelector::select(chosen.len()),
        RowSelector::skip(rows.saturating_sub(chosen.end)),
    ])
}

/// Returns a scan of Parquet files without its first `skip` rows and with at most `fetch`, in one
/// partition. Returns `None` if the scan has conditions or reads another format, if a file has an
/// unknown number of rows, or if the scan already omits a part of a file.
pub(in crate::sql) fn make_window_scan(
    config: &FileScanConfig,
    skip: usize,
    fetch: Option<usize>,
) -> Option<FileScanConfig> {
    let source = config.file_source();
    if source.file_type() != "parquet" || source.filter().is_some() {
        return None;
    }
    let files: Vec<&PartitionedFile> =
        config.file_groups.iter().flat_map(FileGroup::iter).collect();
    // If there are several partitions, each of them stops after `config.limit` rows. Only the first
    // `limit` rows of the scan are then without gaps, so the rows to return must be among these.
    let fetch = match (config.limit, config.file_groups.len()) {
        (None, _) => fetch,
        (Some(limit), 1) => Some(fetch.unwrap_or(usize::MAX).min(limit.saturating_sub(skip))),
        (Some(limit), _) => Some(fetch.filter(|n| skip.saturating_add(*n) <= limit)?),
    };
    let (mut skip, mut left) = (skip, fetch.unwrap_or(usize::MAX));
    let mut chosen = Vec::new();
    for file in merge_ranges(&files)? {
        let planned = file.extension::<ParquetAccessPlan>().is_some()
            || file.extension::<ParquetRowSelection>().is_some();
        let Precision::Exact(rows) = file.statistics.as_ref()?.num_rows else { return None };
        if planned {
            return None;
        }
        let skipped = rows.min(skip);
        let taken = (rows - skipped).min(left);
        (skip, left) = (skip - skipped, left - taken);
        if taken == rows && taken > 0 {
            chosen.push(file);
        } else if taken > 0 {
            let window = skipped..skipped + taken;
            let rows = ParquetRowSelection::new(select_rows(window.clone(), rows));
            chosen.push(file.with_extension(rows).with_extension(RowWindow(window)));
        }
    }
    let builder = FileScanConfigBuilder::from(config.clone())
        .with_limit(None)
        .with_file_groups(vec![FileGroup::new(chosen)])
        .with_output_partitioning(None)
        // The statistics describe all rows of the files, so they are only estimates for a part of
        // the rows.
        .with_statistics(config.statistics().to_inexact());
    Some(builder.build())
}

/// Merges files that were divided into consecutive byte ranges. Returns `None` if a range is
/// missing.
fn merge_ranges(files: &[&PartitionedFile]) -> Option<Vec<PartitionedFile>> {
    let mut out: Vec<PartitionedFile> = Vec::new();
    let mut open: Option<(&PartitionedFile, i64)> = None;
    for file in files {
        let size = i64::try_from(file.object_meta.size).ok()?;
        let Some(range) = &file.range else {
            if open.is_some() {
                return None;
            }
            out.push((*file).clone());
            continue;
        };
        let end = match open {
            None => 0,
            Some((before, end)) if before.object_meta == file.object_meta => end,
            Some(_) => return None,
        };
        if range.start != end {
            return None;
        }
        open = Some((file, range.end));
        if range.end >= size {
            out.push(PartitionedFile { range: None, ..(*file).clone() });
            open = None;
        }
    }
    open.is_none().then_some(out)
}

#[cfg(feature = "generate")]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::parquet::{ParquetTableWriter, ParquetWriteOptions};

    /// Returns the number of rows of each row group in each of `cuts` byte ranges of a file.
    fn shared(metadata: &ParquetMetaData, size: i64, cuts: i64, indexed: bool) -> Vec<Vec<usize>> {
        let bytes = |c: i64| u64::try_from(size * c / cuts).unwrap();
        let rows = |access: RowGroupAccess, all: i64| match access {
            RowGroupAccess::Skip => 0,
            RowGroupAccess::Scan => usize::try_from(all).unwrap(),
            RowGroupAccess::Selection(rows) => rows.row_count(),
        };
        let group = |group: &RowGroupMetaData, c| {
            rows(make_row_access(group, bytes(c)..bytes(c + 1), indexed).unwrap(), group.num_rows())
        };
        (0..cuts).map(|c| metadata.row_groups().iter().map(|g| group(g, c)).collect()).collect()
    }

    #[test]
    fn every_row_belongs_to_one_range() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.parquet");
        let table = crate::generate::mimic_table(120, 7).unwrap();
        let leaves = table.columns().iter().map(|c| c.values().len()).max().unwrap();
        let options = ParquetWriteOptions { row_group_leaves: leaves / 3, ..Default::default() };
        let schema = table.arrow_schema().unwrap();
        let mut writer = ParquetTableWriter::create(&path, &schema, &options).unwrap();
        writer.write(&table).unwrap();
        writer.finish().unwrap();
        let file = std::fs::File::open(&path).unwrap();
        let size = i64::try_from(file.metadata().unwrap().len()).unwrap();
        let metadata =
            parquet::file::metadata::ParquetMetaDataReader::new().parse_and_finish(&file).unwrap();
        let groups = metadata.row_groups();
        let all: Vec<usize> =
            groups.iter().map(|g| usize::try_from(g.num_rows()).unwrap()).collect();
        assert!(all.len() > 1, "{all:?}");
        for cuts in 1..9 {
            for indexed in [true, false] {
                let parts = shared(&metadata, size, cuts, indexed);
                for (group, rows) in all.iter().enumerate() {
                    let counts: Vec<usize> = parts.iter().map(|part| part[group]).collect();
                    assert_eq!(counts.iter().sum::<usize>(), *rows, "{cuts} {indexed}");
                    let held = counts.iter().filter(|n| **n > 0).count();
                    assert!(indexed || held == 1, "{counts:?}");
                }
            }
        }
        // If there are more ranges than row groups, several ranges read parts of one row group.
        let fine = shared(&metadata, size, 256, true);
        let largest = (0..all.len()).max_by_key(|group| all[*group]).unwrap();
        let held = fine.iter().filter(|part| part[largest] > 0).count();
        assert!(held > 1, "{held} of {all:?}");
    }

    #[test]
    fn ranges_that_follow_each_other_are_one_file() {
        let part = |name: &str, start, end| {
            let file = PartitionedFile::new(name, 100);
            file.with_range(start, end)
        };
        let names = |files: &[PartitionedFile]| {
            let files: Vec<&PartitionedFile> = files.iter().collect();
            merge_ranges(&files).map(|files| {
                assert!(files.iter().all(|f| f.range.is_none()));
                files.iter().map(|f| f.object_meta.location.to_string()).collect::<Vec<_>>()
            })
        };
        let plain = PartitionedFile::new("b", 100);
        let cut = [part("a", 0, 40), part("a", 40, 100), plain.clone(), part("c", 0, 100)];
        assert_eq!(names(&cut).unwrap(), ["a", "b", "c"]);
        assert_eq!(names(&[part("a", 0, 40), part("a", 50, 100)]), None);
        assert_eq!(names(&[part("a", 0, 40), plain]), None);
        assert_eq!(names(&[part("a", 0, 40), part("b", 40, 100)]), None);
        assert_eq!(names(&[part("a", 0, 40)]), None);
    }
}
