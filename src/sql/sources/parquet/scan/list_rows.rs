//! [`ListRows`]: adds lists to the rows that DataFusion's scan returns.

use std::collections::VecDeque;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch};
use arrow::compute::{concat, filter, filter_record_batch};
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::internal_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder, Time};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use parquet::arrow::async_reader::AsyncFileReader;
use parquet::file::metadata::ParquetMetaData;

use super::bytes::FetchedBytes;
use super::scan_split::{ListColumn, SplitScan};
use crate::Error;
use crate::io::parquet::lists::{self, ColumnReader, DecodedParts, ListsFile};
use crate::sql::exec::cut_batches::BatchSize;
use crate::sql::sources::nrt::row_runs::{
    count_run_rows, fill_gaps, find_selected_runs, mask_runs,
};

/// Maximum number of leaves (innermost list elements) to decode at once, in multiples of
/// `serrate.leaf_batch_size`: four million by default.
const MAX_DECODED_BATCHES: usize = 8;

/// The unneeded rows between two ranges of needed rows are decoded and discarded if they have at
/// most 1 / `GAP_DIVISOR` of a batch's leaves. Otherwise the ranges are read separately.
const GAP_DIVISOR: usize = 4;

/// Maximum number of rows that a sequential reader reads after its first range of rows, as a
/// multiple of the number of rows in this range.
const MAX_READ_AHEAD: usize = 8;

/// Rows of one row group for which lists must be decoded, with their columns from DataFusion's
/// scan.
#[derive(Debug)]
struct RowGroupPiece {
    group: usize,
    /// Ranges of the rows in the row group; row 0 is the first row of the row group.
    runs: Vec<Range<usize>>,
    given: RecordBatch,
}

/// A reader that reads one column of the row group with index `group` in several steps, in row
/// order.
#[derive(Debug)]
struct SequentialReader {
    reader: ColumnReader<FetchedBytes>,
    group: usize,
}

/// A row of a row group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RowPosition {
    group: usize,
    /// Index of the row in the row group.
    row: usize,
}

/// How far one column has been read. It is kept from one [`RowGroupPiece`] to the next.
#[derive(Debug, Default)]
struct ColumnProgress {
    /// The reader that can continue the last read, or `None` if the last read left no reader open.
    open: Option<SequentialReader>,
    /// The row at which the last read ended; `None` before any read.
    end: Option<RowPosition>,
}

/// Rows whose bytes must be fetched, and the index `column` of their column in the [`SplitScan`].
#[derive(Debug)]
struct ColumnRead {
    column: usize,
    rows: Range<usize>,
    /// Whether a new [`SequentialReader`] reads the rows.
    is_sequential: bool,
}

/// How to read the row ranges of [`PieceSpans`] from one column.
#[derive(Debug, PartialEq)]
enum SpanReading {
    /// The sequential reader of an earlier [`RowGroupPiece`], which is still open, reads the
    /// ranges.
    Continue,
    /// A new sequential reader is opened for these rows. Later [`RowGroupPiece`]s may use it to
    /// read on.
    Sequential(Range<usize>),
    /// Each range is read by a reader of its own.
    Separate,
}

/// The rows to decode for a [`RowGroupPiece`], with the sizes that decide how they are read.
struct PieceSpans<'a> {
    /// Ranges of rows in the row group: the rows of the [`RowGroupPiece`], and the small gaps
    /// between them.
    spans: &'a [Range<usize>],
    group_rows: usize,
    leaves_per_row: usize,
    /// Maximum number of leaves (innermost list elements) in a gap within a span.
    gap_leaves: usize,
    /// Maximum number of leaves (innermost list elements) to decode at once.
    max_leaves: usize,
}

impl PieceSpans<'_> {
    /// Chooses how to read the spans of a column. `open` has the rows that the open reader of the
    /// column has not read yet. `is_indexed` is whether a reader can start at any page. `follows`
    /// is whether the first span begins where the last read ended.
    fn choose_reading(
        &self,
        open: Option<&Range<usize>>,
        is_indexed: bool,
        follows: bool,
    ) -> SpanReading {
        let Some(first) = self.spans.first() else { return SpanReading::Separate };
        if open.is_some_and(|open| self.can_continue(open, is_indexed)) {
            return SpanReading::Continue;
        }
        // Without an offset index, every reader starts at the first page, so one reader reads all
        // spans.
        if !is_indexed {
            return SpanReading::Sequential(first.start..self.group_rows);
        }
        let is_long = first.len().saturating_mul(self.leaves_per_row) >= self.max_leaves / 2;
        if self.spans.len() == 1 && (is_long || follows) {
            // The reader stops after some rows, because later rows may never be required.
            let ahead = first.end.saturating_add(first.len().saturating_mul(MAX_READ_AHEAD));
            return SpanReading::Sequential(first.start..ahead.min(self.group_rows));
        }
        SpanReading::Separate
    }

    /// Whether the open sequential reader should read the spans. `open` is the range of rows that
    /// it has not read yet, and must contain the spans. If the file has an offset index, the reader
    /// must also skip only few leaves. Otherwise a new reader, which starts at the right page, is
    /// cheaper.
    fn can_continue(&self, open: &Range<usize>, is_indexed: bool) -> bool {
        let (Some(first), Some(last)) = (self.spans.first(), self.spans.last()) else {
            return false;
        };
        if first.start < open.start || open.end < last.end {
            return false;
        }
        let skipped = last.end.saturating_sub(open.start) - count_run_rows(self.spans);
        !is_indexed
            || skipped.saturating_mul(self.leaves_per_row) <= self.gap_leaves.saturating_mul(4)
    }
}

pub(super) struct ListRows {
    split: SplitScan,
    given: BoxStream<'static, Result<RecordBatch>>,
    reader: Box<dyn AsyncFileReader + Send>,
    metadata: Arc<ParquetMetaData>,
    name: PathBuf,
    /// Index of the first row of each row group, then the total number of rows.
    starts: Vec<usize>,
    /// Index of the row group to which `fetched` belongs.
    group: usize,
    fetched: Arc<FetchedBytes>,
    /// How far each of `split.columns` has been read.
    progress: Vec<ColumnProgress>,
    pieces: VecDeque<RowGroupPiece>,
    ready: VecDeque<RecordBatch>,
    size: BatchSize,
    next: usize,
    /// Number of rows that LIMIT still allows.
    left: usize,
    time: Time,
    decoded: Count,
}

impl ListRows {
    #[expect(clippy::too_many_arguments, reason = "what a file is and what is wanted of it")]
    pub(super) fn new(
        split: SplitScan,
        given: BoxStream<'static, Result<RecordBatch>>,
        reader: Box<dyn AsyncFileReader + Send>,
        metadata: Arc<ParquetMetaData>,
        (name, bytes): (PathBuf, u64),
        size: BatchSize,
        left: usize,
        (metrics, partition): (&ExecutionPlanMetricsSet, usize),
    ) -> Self {
        let mut starts = vec![0usize];
        for group in metadata.row_groups() {
            let rows = usize::try_from(group.num_rows()).unwrap_or(0);
            starts.push(starts.last().copied().unwrap_or(0).saturating_add(rows));
        }
        let progress = split.columns.iter().map(|_| ColumnProgress::default()).collect();
        Self {
            split,
            given,
            reader,
            metadata,
            name,
            starts,
            group: 0,
            fetched: Arc::new(FetchedBytes::new(bytes)),
            progress,
            pieces: VecDeque::new(),
            ready: VecDeque::new(),
            size,
            next: size.leaves,
            left,
            time: MetricBuilder::new(metrics).subset_time("lists_decode_time", partition),
            decoded: MetricBuilder::new(metrics).counter("lists_rows_decoded", partition),
        }
    }

    pub(super) fn into_stream(self) -> BoxStream<'static, Result<RecordBatch>> {
        stream::try_unfold(self, |mut rows| async move {
            let batch = rows.read_next_batch().await?;
            Ok(batch.map(|batch| (batch, rows)))
        })
        .boxed()
    }

    async fn read_next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Ok(Some(batch));
            }
            if self.left == 0 {
                return Ok(None);
            }
            if let Some(piece) = self.pieces.pop_front() {
                self.decode_piece(piece).await?;
                continue;
            }
            match self.given.next().await {
                Some(batch) => self.cut_pieces(&batch?)?,
                None => return Ok(None),
            }
        }
    }

    /// Returns the average number of leaves (innermost list elements) per row of a row group's
    /// longest list column, at least 1.
    fn leaves_per_row(&self, group: usize) -> usize {
        let Some(group) = self.metadata.row_groups().get(group) else { return 1 };
        let schema = self.metadata.file_metadata().schema_descr();
        let wanted = |i: &usize| {
            let root = schema.get_column_root_idx(*i);
            self.split.columns.iter().any(|c| c.root == root)
        };
        let chunks = group.columns().iter().enumerate().filter(|(i, _)| wanted(i));
        let most = chunks.map(|(_, chunk)| chunk.num_values()).max().unwrap_or(0);
        let rows = group.num_rows().max(1);
        usize::try_from(most / rows).unwrap_or(1).max(1)
    }

    fn compute_max_leaves(&self) -> usize {
        self.size.leaves.saturating_mul(MAX_DECODED_BATCHES)
    }

    fn cut_pieces(&mut self, given: &RecordBatch) -> Result<()> {
        let Some(numbers) = given.columns().last().and_then(|c| c.as_primitive_opt::<Int64Type>())
        else {
            return internal_err!(
                "internal error: a scan of Parquet returned no row numbers; please report it"
            );
        };
        let mut numbers = numbers.values().iter().peekable();
        let mut at = 0;
        while let Some(first) = numbers.peek() {
            let first = usize::try_from(**first).unwrap_or(usize::MAX);
            let group = self.starts.partition_point(|start| *start <= first) - 1;
            let (Some(start), Some(end)) = (self.starts.get(group), self.starts.get(group + 1))
            else {
                return internal_err!(
                    "internal error: {}: row {first} is outside all row groups; please report it",
                    self.name.display()
                );
            };
            let rows = (self.next / self.leaves_per_row(group)).max(1);
            self.next = self.next.saturating_mul(2).min(self.compute_max_leaves());
            let mut runs: Vec<Range<usize>> = Vec::new();
            let mut taken = 0;
            while taken < rows
                && let Some(number) = numbers.next_if(|n| {
                    let n = usize::try_from(**n).unwrap_or(usize::MAX);
                    // A `RowGroupPiece` ends at the end of its row group, or before a row number
                    // that is not greater than the previous row number.
                    n < *end && n >= runs.last().map_or(*start, |run| run.end + start)
                })
            {
                let row = usize::try_from(*number).unwrap_or(usize::MAX) - start;
                match runs.last_mut() {
                    Some(run) if run.end == row => run.end += 1,
                    _ => runs.push(row..row + 1),
                }
                taken += 1;
            }
            self.pieces.push_back(RowGroupPiece { group, runs, given: given.slice(at, taken) });
            at += taken;
        }
        Ok(())
    }

    async fn decode_piece(&mut self, piece: RowGroupPiece) -> Result<()> {
        let RowGroupPiece { group, mut runs, mut given } = piece;
        let mut columns: Vec<ArrayRef> = Vec::new();
        if let Some(condition) = self.split.condition().cloned() {
            columns = self.decode_lists(group, 0..self.split.tested, &runs).await?;
            let timer = self.time.timer();
            let batch = self.split.append_lists(&given, &columns)?;
            let answer = condition.evaluate(&batch)?.into_array(batch.num_rows())?;
            let Some(bits) = answer.as_boolean_opt() else {
                return internal_err!(
                    "internal error: the condition {condition} has the type {} instead of boolean; please report it",
                    answer.data_type()
                );
            };
            let bits = keep_first(bits, self.left);
            runs = find_selected_runs(&runs, &bits);
            let rows = count_run_rows(&runs);
            if rows < given.num_rows() {
                given = filter_record_batch(&given, &bits)?;
                columns = columns.iter().map(|c| filter(c, &bits)).collect::<Result<_, _>>()?;
            }
            timer.done();
            if self.left != usize::MAX {
                self.left -= rows.min(self.left);
            }
            if rows == 0 {
                return Ok(());
            }
        }
        let rest = columns.len()..self.split.columns.len();
        columns.extend(self.decode_lists(group, rest, &runs).await?);
        let timer = self.time.timer();
        let batch = self.split.append_lists(&given, &columns)?;
        let whole =
            |i: &usize| self.split.columns.get(*i).is_some_and(|c| c.parts == DecodedParts::Values);
        let values: Vec<ArrayRef> =
            (0..columns.len()).filter(whole).map(|i| Arc::clone(&columns[i])).collect();
        let mut row = 0;
        while row < batch.num_rows() {
            let most = batch.num_rows().min(row.saturating_add(self.size.rows.max(1)));
            let end = find_end_of_batch(&values, row..most, self.size.leaves);
            self.ready.push_back(self.split.compute_output(&batch.slice(row, end - row))?);
            row = end;
        }
        timer.done();
        Ok(())
    }

    /// Decodes the list columns `split.columns[columns]` for the rows `runs` of a row group.
    async fn decode_lists(
        &mut self,
        group: usize,
        columns: Range<usize>,
        runs: &[Range<usize>],
    ) -> Result<Vec<ArrayRef>> {
        let leaves_per_row = self.leaves_per_row(group);
        let gap_leaves = self.size.leaves / GAP_DIVISOR;
        let spans = fill_gaps(runs, gap_leaves / leaves_per_row);
        let Some(last) = spans.last() else { return Ok(Vec::new()) };
        let group_rows = match (self.starts.get(group), self.starts.get(group + 1)) {
            (Some(start), Some(end)) => end - start,
            _ => last.end,
        };
        let max_leaves = self.compute_max_leaves();
        let piece =
            PieceSpans { spans: &spans, group_rows, leaves_per_row, gap_leaves, max_leaves };
        let reads = self.choose_reads(group, columns.clone(), &piece);
        self.fetch_columns(group, &reads).await?;
        let time = self.time.clone();
        let timer = time.timer();
        self.open_readers(group, &reads)?;
        let decoded = self.decode_spans(group, columns, &spans, runs)?;
        timer.done();
        Ok(decoded)
    }

    /// Chooses how to read the spans of a piece from each column, and returns the rows to fetch.
    /// Closes the readers that cannot continue.
    fn choose_reads(
        &mut self,
        group: usize,
        columns: Range<usize>,
        piece: &PieceSpans<'_>,
    ) -> Vec<ColumnRead> {
        let start = piece.spans.first().map(|first| RowPosition { group, row: first.start });
        let mut reads = Vec::new();
        let all = self.split.columns.iter().zip(&mut self.progress).enumerate();
        for (at, (column, progress)) in all.take(columns.end).skip(columns.start) {
            let open = progress.open.as_ref().filter(|open| open.group == group);
            let open = open.map(|open| open.reader.rows());
            let is_indexed = lists::is_indexed(&self.metadata, group, column.root);
            let follows = progress.end == start;
            match piece.choose_reading(open.as_ref(), is_indexed, follows) {
                SpanReading::Continue => {}
                SpanReading::Sequential(rows) => {
                    progress.open = None;
                    reads.push(ColumnRead { column: at, rows, is_sequential: true });
                }
                SpanReading::Separate => {
                    progress.open = None;
                    reads.extend(piece.spans.iter().map(|span| ColumnRead {
                        column: at,
                        rows: span.clone(),
                        is_sequential: false,
                    }));
                }
            }
        }
        reads
    }

    /// Opens a reader for each sequential read of `reads`. The caller has fetched the bytes of the
    /// reads.
    fn open_readers(&mut self, group: usize, reads: &[ColumnRead]) -> Result<()> {
        let source =
            ListsFile { name: &self.name, reader: &self.fetched, metadata: &self.metadata };
        for read in reads.iter().filter(|read| read.is_sequential) {
            let (Some(column), Some(progress)) =
                (self.split.columns.get(read.column), self.progress.get_mut(read.column))
            else {
                continue;
            };
            let (field, rows) = (column.field.as_ref(), read.rows.clone());
            let reader =
                ColumnReader::open(&source, group, column.root, field, rows, column.parts)?;
            progress.open = Some(SequentialReader { reader, group });
        }
        Ok(())
    }

    /// Decodes the rows `spans` of each column, and discards those that are not in `runs`.
    fn decode_spans(
        &mut self,
        group: usize,
        columns: Range<usize>,
        spans: &[Range<usize>],
        runs: &[Range<usize>],
    ) -> Result<Vec<ArrayRef>> {
        let source =
            ListsFile { name: &self.name, reader: &self.fetched, metadata: &self.metadata };
        let rows = count_run_rows(spans);
        let mask = (rows > count_run_rows(runs)).then(|| mask_runs(spans, runs));
        let mut decoded = Vec::with_capacity(columns.len());
        let all = self.split.columns.iter().zip(&mut self.progress);
        for (column, progress) in all.take(columns.end).skip(columns.start) {
            let parts = spans
                .iter()
                .map(|span| read_span(&source, group, column, progress.open.as_mut(), span));
            let parts = parts.collect::<Result<Vec<_>>>()?;
            self.decoded.add(rows);
            let values = match parts.as_slice() {
                [one] => Arc::clone(one),
                parts => {
                    let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
                    concat(&parts)?
                }
            };
            decoded.push(match &mask {
                Some(mask) => filter(&values, mask)?,
                None => values,
            });
            progress.end = spans.last().map(|last| RowPosition { group, row: last.end });
        }
        Ok(decoded)
    }

    async fn fetch_columns(&mut self, group: usize, reads: &[ColumnRead]) -> Result<()> {
        let size = parquet::file::reader::Length::len(self.fetched.as_ref());
        if self.group != group {
            self.group = group;
            self.fetched = Arc::new(FetchedBytes::new(size));
        }
        let mut ranges = Vec::new();
        for read in reads {
            let Some(column) = self.split.columns.get(read.column) else { continue };
            let (name, metadata) = (&self.name, &self.metadata);
            let column_ranges =
                lists::ranges(name, metadata, group, column.root, read.rows.clone())?;
            if let Some(range) = column_ranges.iter().find(|r| r.end > size || r.start > r.end) {
                let what = format!(
                    "the bytes {}..{} are outside the file of {size} bytes",
                    range.start, range.end
                );
                return Err(make_damage_error(&self.name, group, column.field.name(), &what));
            }
            ranges.extend(column_ranges);
        }
        let missing = self.fetched.find_missing(ranges);
        if missing.is_empty() {
            return Ok(());
        }
        let starts: Vec<u64> = missing.iter().map(|range| range.start).collect();
        let bytes = match self.reader.get_byte_ranges(missing).await {
            Ok(bytes) => bytes,
            Err(e) => {
                let place = format!("{}, row group {group}", self.name.display());
                return Err(DataFusionError::from(e).context(place));
            }
        };
        Arc::make_mut(&mut self.fetched).add(starts.into_iter().zip(bytes));
        Ok(())
    }
}

/// Decodes the rows `span` of a column with the reader `open` or, if it is `None`, with a new
/// reader for these rows.
fn read_span(
    source: &ListsFile<'_, FetchedBytes>,
    group: usize,
    column: &ListColumn,
    open: Option<&mut SequentialReader>,
    span: &Range<usize>,
) -> Result<ArrayRef> {
    let field = column.field.as_ref();
    let values = match open {
        Some(SequentialReader { reader, .. }) => {
            reader.skip_rows(span.start.saturating_sub(reader.rows().start))?;
            reader.read(span.len())?
        }
        None => lists::read_column(source, group, column.root, field, span.clone(), column.parts)?,
    };
    if values.len() != span.len() {
        let what = format!(
            "the number of decoded rows is {}, but the footer declares {}",
            values.len(),
            span.len()
        );
        return Err(make_damage_error(source.name, group, field.name(), &what));
    }
    Ok(values)
}

fn make_damage_error(name: &Path, group: usize, column: &str, what: &str) -> DataFusionError {
    let message = format!(
        "column {column:?}, row group {group}: {what}; the file is damaged and must be written again"
    );
    Error::file(name, message).into()
}

/// Clears all but the first `rows` set bits. NULL counts as not set.
fn keep_first(bits: &BooleanArray, rows: usize) -> BooleanArray {
    let set = match bits.nulls() {
        None => bits.values().clone(),
        Some(nulls) => bits.values() & nulls.inner(),
    };
    match set.set_indices().nth(rows) {
        None => BooleanArray::new(set, None),
        Some(end) => BooleanArray::from_iter((0..set.len()).map(|i| Some(i < end && set.value(i)))),
    }
}

/// Returns the end of the batch that starts at `rows.start`. The batch has at most `leaves` leaves
/// (innermost list elements) per column, or only one row.
fn find_end_of_batch(columns: &[ArrayRef], rows: Range<usize>, leaves: usize) -> usize {
    let starts: Vec<usize> = columns.iter().map(|c| find_first_leaf(c, rows.start)).collect();
    let fits = |row: usize| {
        let mut all = columns.iter().zip(&starts);
        all.all(|(column, start)| find_first_leaf(column, row).saturating_sub(*start) <= leaves)
    };
    let (mut fit, mut over) = (rows.start + 1, rows.end + 1);
    while over - fit > 1 {
        let middle = fit.midpoint(over);
        if fits(middle) { fit = middle } else { over = middle }
    }
    fit
}

/// Returns the index of the first leaf (innermost list element) of row `row`, which is the number
/// of leaves of all earlier rows.
fn find_first_leaf(column: &ArrayRef, row: usize) -> usize {
    let (mut column, mut at) = (column, row);
    loop {
        let next = match column.data_type() {
            DataType::List(_) => {
                let list = column.as_list::<i32>();
                (list.value_offsets().get(at).map(|o| usize::try_from(*o)), list.values())
            }
            DataType::LargeList(_) => {
                let list = column.as_list::<i64>();
                (list.value_offsets().get(at).map(|o| usize::try_from(*o)), list.values())
            }
            _ => return at,
        };
        let (Some(Ok(offset)), values) = next else { return at };
        (at, column) = (offset, values);
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Array, ListArray};

    use super::*;

    fn lists(lengths: &[usize]) -> ArrayRef {
        Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(
            lengths.iter().map(|n| Some(vec![Some(7); *n])),
        ))
    }

    #[test]
    fn batches_end_before_too_many_leaves_and_have_a_row() {
        let a = lists(&[3, 0, 2, 9, 1]);
        let b = lists(&[0, 0, 5, 0, 0]);
        assert_eq!(find_end_of_batch(&[Arc::clone(&a)], 0..5, 5), 3);
        assert_eq!(find_end_of_batch(&[Arc::clone(&a)], 0..5, 1), 1);
        assert_eq!(find_end_of_batch(&[Arc::clone(&a)], 3..5, 1), 4);
        assert_eq!(find_end_of_batch(&[Arc::clone(&a)], 0..5, 100), 5);
        assert_eq!(find_end_of_batch(&[a.slice(2, 3)], 0..3, 11), 2);
        assert_eq!(find_end_of_batch(&[a, b], 0..5, 5), 3);
        assert_eq!(find_end_of_batch(&[], 1..4, 0), 4);
        let flat: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
        assert_eq!(find_first_leaf(&flat, 1), 1);
    }

    #[test]
    fn spans_are_read_in_sequence_if_that_skips_little() {
        let choose = |spans: &[(usize, usize)], open: Option<Range<usize>>, is_indexed, follows| {
            let spans: Vec<Range<usize>> = spans.iter().map(|(start, end)| *start..*end).collect();
            let piece = PieceSpans {
                spans: &spans,
                group_rows: 1_000,
                leaves_per_row: 10,
                gap_leaves: 50,
                max_leaves: 1_000,
            };
            piece.choose_reading(open.as_ref(), is_indexed, follows)
        };
        let (one, two) = ([(100, 110)], [(100, 110), (200, 210)]);
        assert_eq!(choose(&one, None, true, false), SpanReading::Separate);
        assert_eq!(choose(&one, None, true, true), SpanReading::Sequential(100..190));
        assert_eq!(choose(&[(900, 950)], None, true, false), SpanReading::Sequential(900..1_000));
        assert_eq!(choose(&two, None, true, true), SpanReading::Separate);
        assert_eq!(choose(&two, None, false, false), SpanReading::Sequential(100..1_000));
        // An open reader may skip at most 20 rows: these have 200 leaves, four times `gap_leaves`.
        assert_eq!(choose(&one, Some(80..110), true, false), SpanReading::Continue);
        assert_eq!(choose(&one, Some(79..110), true, false), SpanReading::Separate);
        assert_eq!(choose(&two, Some(0..210), false, false), SpanReading::Continue);
        assert_eq!(choose(&two, Some(0..209), false, false), SpanReading::Sequential(100..1_000));
        assert_eq!(choose(&one, Some(101..1_000), true, true), SpanReading::Sequential(100..190));
    }

    #[test]
    fn bits_are_counted_up_to_the_limit() {
        let bits = BooleanArray::from(vec![Some(true), None, Some(true), Some(true), Some(false)]);
        let set = |rows| keep_first(&bits, rows).iter().flatten().collect::<Vec<_>>();
        assert_eq!(set(2), [true, false, true, false, false]);
        assert_eq!(set(0), [false; 5]);
        assert_eq!(set(usize::MAX), [true, false, true, true, false]);
    }
}
