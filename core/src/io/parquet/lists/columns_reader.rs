use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, FieldRef};
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::ChunkReader;
use rayon::prelude::*;

use super::column_cursor::RowReader;
use super::column_shape::ColumnShape;
use super::{DecodedParts, ListsFile};
use crate::error::Result;

/// Reads the same rows of several columns of a file. Decodes the columns in parallel.
pub(in crate::io::parquet) struct ColumnsReader<R: ChunkReader> {
    reader: Arc<R>,
    metadata: Arc<ParquetMetaData>,
    /// Row groups, each with the range of its rows to read; no range is empty.
    spans: Vec<(usize, Range<usize>)>,
    columns: Vec<OpenColumn<R>>,
}

struct OpenColumn<R: ChunkReader> {
    data_type: DataType,
    reader: RowReader<R>,
    /// Index of the current range in [`ColumnsReader::spans`], of which `rows` rows have been read.
    span: usize,
    rows: usize,
}

impl<R: ChunkReader> fmt::Debug for ColumnsReader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Columns").field("spans", &self.spans).finish_non_exhaustive()
    }
}

impl<R: ChunkReader + 'static> ColumnsReader<R> {
    pub(in crate::io::parquet) fn new(
        reader: Arc<R>,
        metadata: Arc<ParquetMetaData>,
        mut spans: Vec<(usize, Range<usize>)>,
    ) -> Self {
        spans.retain(|(_, rows)| !rows.is_empty());
        Self { reader, metadata, spans, columns: Vec::new() }
    }

    /// Adds a column if the list decoder supports it; returns whether it was added.
    pub(in crate::io::parquet) fn add(&mut self, root: usize, field: &FieldRef) -> bool {
        let shape = ColumnShape::new(&self.metadata, root, field);
        let Some(shape) = shape else { return false };
        self.columns.push(OpenColumn {
            data_type: field.data_type().clone(),
            reader: RowReader::new(shape, DecodedParts::Values),
            span: 0,
            rows: 0,
        });
        true
    }

    /// Returns columns in the order in which they were added. At least `rows` rows must be left.
    pub(in crate::io::parquet) fn next(
        &mut self,
        file: &Path,
        rows: usize,
    ) -> Result<Vec<ArrayRef>> {
        let Self { reader, metadata, spans, columns } = self;
        let source = ListsFile { name: file, reader, metadata };
        columns.par_iter_mut().map(|column| column.next(&source, spans, rows)).collect()
    }
}

impl<R: ChunkReader> OpenColumn<R> {
    fn next(
        &mut self,
        source: &ListsFile<'_, R>,
        spans: &[(usize, Range<usize>)],
        rows: usize,
    ) -> Result<ArrayRef> {
        let (mut left, mut values, mut begun) = (rows, 0usize, self.rows);
        for (group, span) in spans.get(self.span..).unwrap_or_default() {
            let in_span = left.min(span.len() - begun);
            values = values.saturating_add(self.reader.estimate_values(source, *group, in_span)?);
            (left, begun) = (left - in_span, 0);
            if left == 0 {
                break;
            }
        }
        self.reader.reserve(values);
        left = rows;
        while left > 0 {
            let Some((group, span)) = spans.get(self.span) else { break };
            if self.rows == 0 {
                self.reader.open(source, *group, span)?;
            }
            let in_span = left.min(span.len() - self.rows);
            self.reader.append_rows(in_span)?;
            left -= in_span;
            self.rows += in_span;
            if self.rows == span.len() {
                (self.span, self.rows) = (self.span + 1, 0);
            }
        }
        self.reader.finish(&self.data_type)
    }
}
