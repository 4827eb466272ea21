//! The MEDS columns of some rows of a file, validated and cast.

use std::sync::Arc;

use arrow::array::{
    Array, AsArray, Float32Array, Float64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray, new_null_array,
};
use arrow::buffer::{NullBuffer, ScalarBuffer};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{
    DataType, Float32Type, Float64Type, Int64Type, TimestampMicrosecondType, UInt32Type,
};

use super::file::MedsFile;
use super::find_time_type;
use crate::array::nulls::find_validity;
use crate::error::Result;

/// Number of rows per chunk: enough to amortize the dictionary lookups, few enough to stay in
/// cache.
const CHUNK_ROWS: usize = 1 << 16;

const COLUMNS: [&str; 4] = ["subject_id", "time", "code", "numeric_value"];

pub(crate) struct MissingValue {
    pub(crate) column: &'static str,
    /// The row in the file.
    pub(crate) row: usize,
}

/// Drops the rows whose subject or code is NULL. Also returns the indices of the remaining rows
/// (`None` if no row was dropped), and a [`MissingValue`] for each NULL.
fn drop_incomplete_rows(
    batch: &RecordBatch,
    first_row: usize,
) -> Result<(RecordBatch, Option<Vec<usize>>, Vec<MissingValue>)> {
    let mut missing = Vec::new();
    for column in ["subject_id", "code"] {
        let Some(values) = batch.column_by_name(column) else { continue };
        if let Some(nulls) = find_validity(values) {
            let rows = nulls.iter().enumerate().filter(|(_, valid)| !valid);
            missing.extend(rows.map(|(row, _)| {
                let row = first_row.saturating_add(row);
                MissingValue { column, row }
            }));
        }
    }
    if missing.is_empty() {
        return Ok((batch.clone(), None, missing));
    }
    let mut keep = vec![true; batch.num_rows()];
    for value in &missing {
        keep[value.row - first_row] = false;
    }
    let kept = (0..keep.len()).filter(|row| keep[*row]).collect();
    Ok((filter_record_batch(batch, &keep.into())?, Some(kept), missing))
}

/// The MEDS columns of some rows of a file, validated: no subject or code is NULL.
pub(crate) struct MedsChunk {
    pub(crate) first_row: usize,
    /// For each row, its number in the file minus the field `first_row`; `None` if no row was
    /// dropped.
    kept: Option<Vec<usize>>,
    pub(crate) subjects: ScalarBuffer<i64>,
    /// Times of the rows: NULL for static facts, and for all rows if times were not requested.
    pub(crate) times: TimestampMicrosecondArray,
    /// Code of each row, as an index into the field `codes`.
    pub(crate) keys: ScalarBuffer<u32>,
    /// Distinct codes. Chunks with the same dictionary in the file share the buffers of this array.
    pub(crate) codes: StringArray,
    pub(crate) values: ChunkValues,
}

/// The column `numeric_value`. `Single` also holds float16 values. `Absent` means that the file has
/// no such column, or one of the type Null.
pub(crate) enum ChunkValues {
    Absent,
    Single(Float32Array),
    Double(Float64Array),
}

impl ChunkValues {
    pub(crate) fn nulls(&self) -> Option<&NullBuffer> {
        let nulls = match self {
            Self::Absent => None,
            Self::Single(v) => v.nulls(),
            Self::Double(v) => v.nulls(),
        };
        nulls.filter(|n| n.null_count() > 0)
    }
}

impl MedsChunk {
    #[inline]
    pub(crate) fn find_row_in_file(&self, row: usize) -> usize {
        let offset = self.kept.as_ref().map_or(row, |kept| kept[row]);
        self.first_row.saturating_add(offset)
    }

    pub(crate) fn len(&self) -> usize {
        self.subjects.len()
    }

    /// Returns the time of a row; `None` for a static fact.
    #[inline]
    pub(crate) fn time(&self, row: usize) -> Option<i64> {
        self.times.is_valid(row).then(|| self.times.value(row))
    }

    /// Returns the end of the rows from `row` to `limit` with the same subject and time.
    #[inline]
    pub(crate) fn find_run_end(&self, row: usize, limit: usize) -> usize {
        let (subjects, times) = (&self.subjects[row..limit], &self.times.values()[row..limit]);
        let same = match (subjects.first(), times.first(), self.times.nulls()) {
            (Some(&subject), Some(&time), None) => {
                let rows = subjects.iter().zip(times);
                rows.take_while(|(s, t)| (**s, **t) == (subject, time)).count()
            }
            (Some(&subject), _, Some(_)) => {
                let time = self.time(row);
                let rows = subjects.iter().zip(row..);
                rows.take_while(|(s, at)| **s == subject && self.time(*at) == time).count()
            }
            _ => 0,
        };
        row + same
    }

    /// Returns whether the field `codes` has the same buffers as `before`. If so, the caller can
    /// reuse what it has computed for each code of `before`.
    pub(crate) fn has_same_codes(&self, before: &StringArray) -> bool {
        let (a, b) = (&self.codes, before);
        a.len() == b.len()
            && a.values().as_ptr() == b.values().as_ptr()
            && a.value_offsets().as_ptr() == b.value_offsets().as_ptr()
    }

    /// Reads a file in chunks. Returns an error that names file, column and row if the file cannot
    /// be read, lacks a column, has a column of a type that MEDS does not allow, or has a NULL
    /// subject or code.
    pub(crate) fn read(source: &MedsFile) -> Result<impl Iterator<Item = Result<Self>> + '_> {
        Self::read_columns(source, &COLUMNS)
    }

    pub(crate) fn read_without_times(
        source: &MedsFile,
    ) -> Result<impl Iterator<Item = Result<Self>> + '_> {
        Self::read_columns(source, &["subject_id", "code", "numeric_value"])
    }

    /// Drops rows whose subject or code is NULL, and returns a [`MissingValue`] for each NULL.
    pub(crate) fn read_complete(
        source: &MedsFile,
    ) -> Result<impl Iterator<Item = Result<(Self, Vec<MissingValue>)>> + '_> {
        let batches = source.read_batches(&COLUMNS, Some("code"), CHUNK_ROWS)?;
        let mut first_row = 0usize;
        Ok(batches.map(move |batch| {
            let batch = batch?;
            let (complete, kept, missing) = drop_incomplete_rows(&batch, first_row)?;
            let mut chunk = Self::from_batch(source, &complete, first_row, true)?;
            chunk.kept = kept;
            first_row = first_row.saturating_add(batch.num_rows());
            Ok((chunk, missing))
        }))
    }

    fn read_columns<'a>(
        source: &'a MedsFile,
        columns: &'static [&'static str],
    ) -> Result<impl Iterator<Item = Result<Self>> + use<'a>> {
        let batches = source.read_batches(columns, Some("code"), CHUNK_ROWS)?;
        let timed = columns.contains(&"time");
        let mut first_row = 0usize;
        Ok(batches.map(move |batch| {
            let batch = batch?;
            let chunk = Self::from_batch(source, &batch, first_row, timed)?;
            first_row = first_row.saturating_add(batch.num_rows());
            Ok(chunk)
        }))
    }

    fn from_batch(
        source: &MedsFile,
        batch: &RecordBatch,
        first_row: usize,
        timed: bool,
    ) -> Result<Self> {
        use DataType::{Date32, Date64, Float16, Float32, Null, Timestamp};
        let subjects = source.require_column(batch, "subject_id")?;
        if !subjects.data_type().is_integer() {
            return Err(source.make_type_error(
                "subject_id",
                "int64 (cast the column in the file)",
                subjects.data_type(),
            ));
        }
        source.check_no_nulls("subject_id", subjects, first_row)?;
        let subjects = source.cast_column("subject_id", subjects, &DataType::Int64)?;

        let times = match timed {
            true => Arc::clone(source.require_column(batch, "time")?),
            false => new_null_array(&find_time_type(), batch.num_rows()),
        };
        if !matches!(times.data_type(), Timestamp(_, _) | Date32 | Date64 | Null) {
            return Err(source.make_type_error(
                "time",
                "timestamp (cast the column in the file)",
                times.data_type(),
            ));
        }
        let times = source.cast_time("time", &times)?;

        let code = source.cast_codes(batch, first_row)?;
        let code = code.as_dictionary::<UInt32Type>();

        let values = match batch.column_by_name("numeric_value") {
            None => ChunkValues::Absent,
            Some(v) if *v.data_type() == Null => ChunkValues::Absent,
            Some(v) if matches!(v.data_type(), Float32 | Float16) => {
                let v = source.cast_column("numeric_value", v, &Float32)?;
                ChunkValues::Single(v.as_primitive::<Float32Type>().clone())
            }
            Some(v) if v.data_type().is_numeric() => {
                let v = source.cast_column("numeric_value", v, &DataType::Float64)?;
                ChunkValues::Double(v.as_primitive::<Float64Type>().clone())
            }
            Some(v) => {
                return Err(source.make_type_error(
                    "numeric_value",
                    "numbers (cast the column in the file)",
                    v.data_type(),
                ));
            }
        };
        Ok(Self {
            first_row,
            kept: None,
            subjects: subjects.as_primitive::<Int64Type>().values().clone(),
            times: times.as_primitive::<TimestampMicrosecondType>().clone(),
            keys: code.keys().values().clone(),
            codes: match code.values().as_string_opt::<i32>() {
                Some(codes) => codes.clone(),
                // Only a dictionary without values has another type than Utf8.
                None => new_null_array(&DataType::Utf8, 0).as_string::<i32>().clone(),
            },
            values,
        })
    }
}
