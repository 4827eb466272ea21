//! Reads the pages of a column chunk and splits them into levels and values.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageReader};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::page_index::offset_index::PageLocation;
use parquet::file::reader::ChunkReader;
use parquet::file::serialized_reader::SerializedPageReader;

use super::column_shape::ColumnShape;
use super::hybrid::{DecodeFault, HybridDecoder};
use crate::error::{Error, Result};
use crate::io::parquet::find_chunk_bytes;

/// An open Parquet file.
#[derive(Debug)]
pub struct ListsFile<'a, R> {
    /// Name of the file in errors.
    pub name: &'a Path,
    /// Bytes of the file: local, in memory, or fetched ranges (see [`ranges`](super::ranges)).
    pub reader: &'a Arc<R>,
    /// Footer of the file. If it has an offset index, only pages with requested rows are read.
    pub metadata: &'a ParquetMetaData,
}

#[derive(Clone, Debug)]
pub(super) struct ErrorPlace {
    file: PathBuf,
    column: String,
    group: usize,
    /// Number of data pages started so far.
    pub(super) pages: usize,
}

impl ErrorPlace {
    fn new(file: &Path, chunk: &ColumnChunkMetaData, group: usize) -> Self {
        Self { file: file.into(), column: chunk.column_path().string(), group, pages: 0 }
    }

    pub(super) fn make_error(&self, message: impl AsRef<str>) -> Error {
        let message = message.as_ref();
        Error::file(
            &self.file,
            format!("column {}, row group {}: {message}", self.column, self.group),
        )
    }

    pub(super) fn make_page_error(&self, fault: &DecodeFault) -> Error {
        self.make_error(format!("data page {}: {}", self.pages.saturating_sub(1), fault.0))
    }
}

/// A column chunk as described by the footer, with validated offsets and counts.
#[derive(Clone, Debug)]
pub(super) struct ColumnChunk<'a> {
    pub(super) place: ErrorPlace,
    pub(super) metadata: &'a ColumnChunkMetaData,
    pub(super) bytes: Range<u64>,
    pub(super) rows: usize,
    /// Number of entries (pairs of levels): one per value, per null, and per list without elements.
    pub(super) entries: usize,
    /// Locations of the data pages in the offset index; empty without an offset index.
    pub(super) pages: &'a [PageLocation],
}

impl<'a> ColumnChunk<'a> {
    pub(super) fn new(
        file: &Path,
        metadata: &'a ParquetMetaData,
        group: usize,
        column: usize,
    ) -> Result<Self> {
        let groups = metadata.row_groups();
        let found: Option<&RowGroupMetaData> = groups.get(group);
        let chunk = found.and_then(|g| g.columns().get(column));
        let (Some(row_group), Some(chunk)) = (found, chunk) else {
            return Err(Error::file(
                file,
                format!(
                    "row group {group} and column {column} were requested, but the file has {} row group(s) of {} column(s); give smaller indices",
                    groups.len(),
                    metadata.file_metadata().schema_descr().num_columns()
                ),
            ));
        };
        let place = ErrorPlace::new(file, chunk, group);
        let count = |what: &str, n: i64| {
            usize::try_from(n).map_err(|_| {
                place.make_error(format!(
                    "the footer counts {n} {what}; the number of {what} must be 0 or more, so the file is damaged; create it again"
                ))
            })
        };
        let rows = count("rows", row_group.num_rows())?;
        let entries = count("values", chunk.num_values())?;
        let Some(bytes) = find_chunk_bytes(chunk) else {
            let start = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
            let size = chunk.compressed_size();
            return Err(place.make_error(format!(
                "the footer places the column chunk at byte {start} with {size} byte(s); both numbers must be 0 or more, so create the file again"
            )));
        };
        let index = metadata.offset_index().and_then(|i| i.get(group)?.get(column));
        let pages = index.map_or(&[][..], |i| i.page_locations());
        let out = Self { place, metadata: chunk, bytes, rows, entries, pages };
        out.check_index()?;
        Ok(out)
    }

    /// Checks that pages follow each other within the chunk, and their first rows ascend from 0.
    fn check_index(&self) -> Result<()> {
        let (mut end, mut row) = (self.bytes.start, 0);
        for (i, page) in self.pages.iter().enumerate() {
            let start = u64::try_from(page.offset).ok().filter(|o| *o >= end);
            let size = u64::try_from(page.compressed_page_size).ok();
            let next = start.zip(size).and_then(|(start, size)| start.checked_add(size));
            let first = usize::try_from(page.first_row_index).ok();
            let within = |f: &usize| *f >= row && *f <= self.rows && (i > 0 || *f == 0);
            let follows = first.filter(within);
            match (next.filter(|n| *n <= self.bytes.end), follows) {
                (Some(next), Some(first)) => (end, row) = (next, first),
                _ => {
                    return Err(self.place.make_error(format!(
                        "the offset index places data page {i} of {size} byte(s) at byte {offset}, beginning with row {row}; pages must be in order, within the bytes {chunk:?} and the {rows} row(s) of the chunk, so create the file again",
                        size = page.compressed_page_size,
                        offset = page.offset,
                        row = page.first_row_index,
                        chunk = self.bytes,
                        rows = self.rows
                    )));
                }
            }
        }
        Ok(())
    }

    pub(super) fn check_rows(&self, rows: &Range<usize>) -> Result<()> {
        if rows.start > rows.end || rows.end > self.rows {
            return Err(self.place.make_error(format!(
                "rows {}..{} were requested, but the row group has {} row(s); request rows within this range",
                rows.start, rows.end, self.rows
            )));
        }
        Ok(())
    }

    /// Returns the range of pages that contain `rows`, and the range of all rows of these pages.
    /// Returns `None` if these are all pages, if `rows` is empty, or if there is no offset index.
    pub(super) fn find_pages_of_rows(
        &self,
        rows: &Range<usize>,
    ) -> Option<(Range<usize>, Range<usize>)> {
        if self.pages.is_empty() || rows.is_empty() {
            return None;
        }
        let first_row = |p: &PageLocation| usize::try_from(p.first_row_index).unwrap_or(0);
        let first = self.pages.partition_point(|p| first_row(p) <= rows.start) - 1;
        let end = self.pages.partition_point(|p| first_row(p) < rows.end).max(first + 1);
        if (first, end) == (0, self.pages.len()) {
            return None;
        }
        let to = self.pages.get(end).map_or(self.rows, first_row);
        Some((first..end, first_row(&self.pages[first])..to))
    }

    pub(super) fn list_byte_ranges(&self, rows: &Range<usize>) -> Vec<Range<u64>> {
        let Some((pages, _)) = self.find_pages_of_rows(rows) else {
            return vec![self.bytes.clone()];
        };
        let at = |n: i64| u64::try_from(n).unwrap_or(0);
        let (first, last) = (&self.pages[pages.start], &self.pages[pages.end - 1]);
        let data = at(first.offset)..at(last.offset) + at(last.compressed_page_size.into());
        let mut dictionary = self.bytes.start..at(self.pages[0].offset);
        if dictionary.end == data.start {
            dictionary.end = data.end;
            return vec![dictionary];
        }
        let parts = [dictionary, data];
        parts.into_iter().filter(|r| !r.is_empty()).collect()
    }
}

#[derive(Debug)]
pub(super) struct DataPage {
    pub(super) rep: HybridDecoder,
    pub(super) def: HybridDecoder,
    pub(super) entries: usize,
    pub(super) encoding: Encoding,
    pub(super) values: Bytes,
}

#[derive(Debug)]
pub(super) enum PageContent {
    Dictionary { values: Bytes, count: usize },
    Data(DataPage),
}

pub(super) struct ListPages<R: ChunkReader> {
    reader: SerializedPageReader<R>,
    /// Range of data pages to read (earlier pages are skipped); `None` to read all pages.
    window: Option<Range<usize>>,
    /// Whether the next page may be a dictionary.
    first: bool,
    def_bits: usize,
    rep_bits: usize,
}

impl<R: ChunkReader> ListPages<R> {
    pub(super) fn new(
        source: &ListsFile<'_, R>,
        chunk: &ColumnChunk<'_>,
        shape: &ColumnShape,
        window: Option<Range<usize>>,
    ) -> Result<Self> {
        let length = source.reader.len();
        if chunk.bytes.end > length {
            return Err(chunk.place.make_error(format!(
                "the footer places the column chunk at bytes {:?}, but the file has only {length} bytes; create it again",
                chunk.bytes
            )));
        }
        let locations = window.is_some().then(|| chunk.pages.to_vec());
        let reader = SerializedPageReader::new(
            Arc::clone(source.reader),
            chunk.metadata,
            chunk.rows,
            locations,
        )
        .map_err(|e| chunk.place.make_error(e.to_string()))?;
        // The offset index lists all data pages; bytes before the first one are the dictionary.
        let has_dictionary =
            chunk.pages.first().is_some_and(|p| u64::try_from(p.offset) != Ok(chunk.bytes.start));
        let bits = |max: u8| 8 - max.leading_zeros() as usize;
        Ok(Self {
            reader,
            first: window.is_none() || has_dictionary,
            window,
            def_bits: bits(shape.max_def),
            rep_bits: bits(shape.max_rep),
        })
    }

    pub(super) fn next(&mut self, place: &mut ErrorPlace) -> Result<Option<PageContent>> {
        let unreadable = |place: &ErrorPlace, e: parquet::errors::ParquetError| {
            place.make_page_error(&DecodeFault(e.to_string()))
        };
        if let (false, Some(window)) = (self.first, &mut self.window) {
            while place.pages < window.start {
                self.reader.skip_next_page().map_err(|e| unreadable(place, e))?;
                place.pages += 1;
            }
            if place.pages >= window.end {
                return Ok(None);
            }
        }
        let page = self.reader.get_next_page().map_err(|e| {
            place.make_error(format!(
                "page {} cannot be read; create the file again: {e}",
                place.pages
            ))
        })?;
        let first = std::mem::replace(&mut self.first, false);
        let Some(page) = page else { return Ok(None) };
        if let Page::DictionaryPage { buf, num_values, encoding, .. } = page {
            if !first {
                return Err(
                    place.make_error("a dictionary page follows data pages, but must be the first page; create the file again")
                );
            }
            if !matches!(encoding, Encoding::PLAIN | Encoding::PLAIN_DICTIONARY) {
                return Err(place.make_error(format!(
                    "the dictionary has the encoding {encoding}, which is not supported; write the file with PLAIN or PLAIN_DICTIONARY"
                )));
            }
            return Ok(Some(PageContent::Dictionary { values: buf, count: num_values as usize }));
        }
        place.pages += 1;
        self.split_page(page)
            .map(|page| Some(PageContent::Data(page)))
            .map_err(|fault| place.make_page_error(&fault))
    }

    fn split_page(&self, page: Page) -> Result<DataPage, DecodeFault> {
        match page {
            Page::DataPage {
                mut buf,
                num_values,
                encoding,
                def_level_encoding,
                rep_level_encoding,
                ..
            } => {
                let rep =
                    split_levels(&mut buf, self.rep_bits, rep_level_encoding, "repetition levels")?;
                let def =
                    split_levels(&mut buf, self.def_bits, def_level_encoding, "definition levels")?;
                Ok(DataPage { rep, def, entries: num_values as usize, encoding, values: buf })
            }
            Page::DataPageV2 {
                mut buf,
                num_values,
                encoding,
                def_levels_byte_len,
                rep_levels_byte_len,
                ..
            } => {
                let (rep, def) = (rep_levels_byte_len as usize, def_levels_byte_len as usize);
                if rep.saturating_add(def) > buf.len() {
                    return Err(DecodeFault::new(format!(
                        "the header declares {rep} bytes of repetition levels and {def} bytes of definition levels, but the page has {} bytes, so the file is damaged; create it again",
                        buf.len()
                    )));
                }
                let rep = HybridDecoder::new(buf.split_to(rep), self.rep_bits);
                let def = HybridDecoder::new(buf.split_to(def), self.def_bits);
                Ok(DataPage { rep, def, entries: num_values as usize, encoding, values: buf })
            }
            Page::DictionaryPage { .. } => Err(DecodeFault::new(
                "expected a data page, found a dictionary page, so the file is damaged; create it again",
            )),
        }
    }
}

/// Splits levels off the data `buf` of a version 1 page. `levels` is their name in errors, such as
/// "repetition levels".
fn split_levels(
    buf: &mut Bytes,
    bits: usize,
    encoding: Encoding,
    levels: &str,
) -> Result<HybridDecoder, DecodeFault> {
    if bits == 0 {
        return Ok(HybridDecoder::new(Bytes::new(), 0));
    }
    if encoding != Encoding::RLE {
        return Err(DecodeFault::new(format!(
            "the {levels} have the encoding {encoding}, which is not supported; write the file with RLE levels"
        )));
    }
    let length = buf.first_chunk().map(|four| u32::from_le_bytes(*four) as usize);
    let left = buf.len().saturating_sub(4);
    match length {
        Some(length) if length <= left => {
            let _ = buf.split_to(4);
            Ok(HybridDecoder::new(buf.split_to(length), bits))
        }
        Some(length) => Err(DecodeFault::new(format!(
            "the {levels} take {length} byte(s), but only {left} are left in the page, so the file is damaged; create it again"
        ))),
        None => Err(DecodeFault::new(format!(
            "the {levels} begin with their length in 4 bytes, but only {} byte(s) are left in the page, so the file is damaged; create it again",
            buf.len()
        ))),
    }
}
