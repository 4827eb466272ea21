//! A cursor over the rows of a column, which skips or appends rows across pages and chunks.

use std::fmt;
use std::ops::Range;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use parquet::file::reader::ChunkReader;

use super::bitmap::count_ones;
use super::column_shape::ColumnShape;
use super::hybrid::DecodeFault;
use super::level_window::{ENTRIES, LevelWindow};
use super::list_builder::ListsBuilder;
use super::page_values::{EncodedValues, ValueSink, new_sink};
use super::pages::{ColumnChunk, DataPage, ErrorPlace, ListPages, PageContent};
use super::{DecodedParts, ListsFile};
use crate::error::Result;
use crate::kernels::simd::for_avx2;

/// Maximum number of entries (level pairs) per byte of a column chunk for which memory is reserved,
/// because a damaged footer could declare any number of entries.
const ENTRIES_PER_BYTE: u64 = 16;

/// Memory is reserved for at most this many values before the first value is decoded.
const MOST_EXPECTED: usize = 1 << 28;

#[derive(Debug)]
struct OpenPage {
    /// The page that is being read, without the levels that were moved to the [`LevelWindow`].
    page: DataPage,
    values: EncodedValues,
}

struct PageCursor<R: ChunkReader> {
    pages: ListPages<R>,
    place: ErrorPlace,
    open: Option<OpenPage>,
    window: Box<LevelWindow>,
    /// Number of entries of the chunk according to the footer, minus the entries of the pages
    /// opened so far.
    entries: usize,
    /// Whether `pages` has all pages of the chunk. If so, the pages must have as many entries as
    /// the footer declares.
    whole: bool,
    /// Number of rows begun so far. The field `all` is the number of rows in the pages to read.
    rows: usize,
    all: usize,
}

pub(super) struct RowReader<R: ChunkReader> {
    shape: ColumnShape,
    parts: DecodedParts,
    lists: ListsBuilder,
    sink: Box<dyn ValueSink>,
    cursor: Option<PageCursor<R>>,
}

impl<R: ChunkReader> fmt::Debug for RowReader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowReader").field("shape", &self.shape).finish_non_exhaustive()
    }
}

impl<R: ChunkReader> RowReader<R> {
    pub(super) fn new(shape: ColumnShape, parts: DecodedParts) -> Self {
        Self {
            lists: ListsBuilder::new(&shape),
            sink: new_sink(shape.leaf),
            cursor: None,
            parts,
            shape,
        }
    }

    pub(super) fn open(
        &mut self,
        source: &ListsFile<'_, R>,
        group: usize,
        rows: &Range<usize>,
    ) -> Result<()> {
        let chunk = ColumnChunk::new(source.name, source.metadata, group, self.shape.column)?;
        chunk.check_rows(rows)?;
        let selected = chunk.find_pages_of_rows(rows);
        let (window, held) = selected.unzip();
        let held = held.unwrap_or(0..chunk.rows);
        let pages = ListPages::new(source, &chunk, &self.shape, window.clone())?;
        self.sink.clear_dictionary();
        self.cursor = Some(PageCursor {
            pages,
            place: chunk.place,
            open: None,
            window: Box::new(LevelWindow::new(&self.shape)),
            entries: chunk.entries,
            whole: window.is_none(),
            rows: 0,
            all: held.len(),
        });
        self.move_rows(rows.start - held.start, false)
    }

    pub(super) fn estimate_values(
        &self,
        source: &ListsFile<'_, R>,
        group: usize,
        rows: usize,
    ) -> Result<usize> {
        let chunk = ColumnChunk::new(source.name, source.metadata, group, self.shape.column)?;
        let bytes = chunk.bytes.end.min(source.reader.len()).saturating_sub(chunk.bytes.start);
        let most = usize::try_from(bytes.saturating_mul(ENTRIES_PER_BYTE)).unwrap_or(usize::MAX);
        let entries = chunk.entries.min(most) as u128 * rows as u128;
        let entries = entries.div_ceil(chunk.rows.max(1) as u128);
        Ok(usize::try_from(entries).unwrap_or(most).min(most))
    }

    pub(super) fn reserve(&mut self, values: usize) {
        if self.parts == DecodedParts::Values {
            let values = values.min(MOST_EXPECTED);
            // Ignore a failure: `values` is an estimate, and decoding reports a lack of memory.
            let _ = self.sink.grow(values);
        }
    }

    pub(super) fn append_rows(&mut self, rows: usize) -> Result<()> {
        self.move_rows(rows, true)
    }

    pub(super) fn skip_rows(&mut self, rows: usize) -> Result<()> {
        self.move_rows(rows, false)
    }

    pub(super) fn finish(&mut self, data_type: &DataType) -> Result<ArrayRef> {
        let lists = std::mem::replace(&mut self.lists, ListsBuilder::new(&self.shape));
        let slots = lists.slots();
        lists.finish(data_type, |leaf, nulls| self.sink.finish(slots, leaf, nulls))
    }

    fn move_rows(&mut self, rows: usize, keep: bool) -> Result<()> {
        let Self { shape, parts, lists, sink, cursor, .. } = self;
        let Some(cursor) = cursor else { return Ok(()) };
        let mut steps = DecodeTarget {
            shape,
            values: *parts == DecodedParts::Values,
            lists,
            sink: &mut **sink,
        };
        cursor.pass_rows(&mut steps, rows, keep)
    }
}

struct DecodeTarget<'a> {
    shape: &'a ColumnShape,
    values: bool,
    lists: &'a mut ListsBuilder,
    sink: &'a mut dyn ValueSink,
}

impl<R: ChunkReader> PageCursor<R> {
    /// Appends or skips the next `rows` rows, up to the start of another row, because the last row
    /// may continue in the next page. Row and value counts that differ from the footer are errors.
    fn pass_rows(&mut self, to: &mut DecodeTarget<'_>, mut rows: usize, keep: bool) -> Result<()> {
        if rows == 0 {
            return Ok(());
        }
        loop {
            let Some(open) = &mut self.open else {
                if !self.next_page(to)? {
                    return self.check_ends(rows);
                }
                let page = self.open.as_ref().filter(|_| !keep);
                let passed =
                    page.map_or(Ok(false), |page| page.skip_page(&mut rows, &mut self.rows));
                if passed.map_err(|fault| self.place.make_page_error(&fault))? {
                    self.open = None;
                }
                continue;
            };
            let ended = open
                .pass_page_rows(&mut self.window, to, &mut rows, &mut self.rows, keep)
                .map_err(|fault| self.place.make_page_error(&fault))?;
            if self.rows > self.all {
                return Err(self.place.make_page_error(&DecodeFault::new(format!(
                    "the file is damaged, because the pages have more rows than the expected {}; create it again",
                    self.all
                ))));
            }
            if ended {
                return Ok(());
            }
            self.open = None;
        }
    }

    fn check_ends(&self, rows: usize) -> Result<()> {
        if rows > 0 || self.rows != self.all {
            return Err(self.place.make_error(format!(
                "the file is damaged, because the pages have {} row(s) instead of {}; create it again",
                self.rows, self.all
            )));
        }
        if self.whole && self.entries > 0 {
            return Err(self.place.make_error(format!(
                "the file is damaged, because the footer counts {} value(s) more than the pages have; create it again",
                self.entries
            )));
        }
        Ok(())
    }

    /// Opens the next data page. Returns false after the last page.
    fn next_page(&mut self, to: &mut DecodeTarget<'_>) -> Result<bool> {
        loop {
            match self.pages.next(&mut self.place)? {
                None => return Ok(false),
                Some(PageContent::Dictionary { values, count }) => {
                    if to.values {
                        let kept = to.sink.set_dictionary(&values, count);
                        kept.map_err(|fault| self.place.make_error(fault.0))?;
                    }
                }
                Some(PageContent::Data(page)) => {
                    let Some(left) = self.entries.checked_sub(page.entries) else {
                        return Err(self.place.make_page_error(&DecodeFault::new(format!(
                            "the file is damaged, because the page has {} value(s), but the footer counts only {} after the earlier pages; create it again",
                            page.entries, self.entries
                        ))));
                    };
                    self.entries = left;
                    let values = if to.values {
                        EncodedValues::new(page.encoding, page.values.clone(), to.shape.leaf)
                            .map_err(|fault| self.place.make_page_error(&fault))?
                    } else {
                        EncodedValues::Plain(bytes::Bytes::new())
                    };
                    self.open = Some(OpenPage { page, values });
                    return Ok(true);
                }
            }
        }
    }
}

impl OpenPage {
    /// Skips the whole page if at most `rows` rows begin in it: subtracts their number from `rows`,
    /// adds it to `begun`, and returns true. Reads only repetition levels.
    fn skip_page(&self, rows: &mut usize, begun: &mut usize) -> Result<bool, DecodeFault> {
        let zeros = |entries| self.page.rep.clone().count_zeros(entries);
        let starts = zeros(self.page.entries)?;
        let goes_on = self.page.entries > 0 && zeros(1)? == 0;
        if starts > *rows || *begun == 0 && goes_on {
            return Ok(false);
        }
        *rows -= starts;
        *begun += starts;
        Ok(true)
    }

    /// Appends or skips rows: subtracts the number that begin in this page from `rows`, and adds it
    /// to `begun`. Returns whether all `rows` rows end in this page.
    fn pass_page_rows(
        &mut self,
        window: &mut LevelWindow,
        to: &mut DecodeTarget<'_>,
        rows: &mut usize,
        begun: &mut usize,
        keep: bool,
    ) -> Result<bool, DecodeFault> {
        let from = to.lists.slots();
        let mut skipped = 0;
        let ended = loop {
            if window.at == window.n {
                let n = self.page.entries.min(ENTRIES);
                if n == 0 {
                    break false;
                }
                self.page.entries -= n;
                window.refill_window(&mut self.page.rep, &mut self.page.def, n, to.shape)?;
                if *begun == 0 && window.rows[0] & 1 == 0 {
                    return Err(DecodeFault::new(
                        "the first repetition level continues a row, but no row has begun, so the file is damaged; create it again",
                    ));
                }
            }
            let left = *rows;
            let ended = if keep {
                append_entries(window, to.lists, rows)?
            } else {
                count_skipped(window, &mut skipped, rows)
            };
            *begun += left - *rows;
            if ended {
                break true;
            }
        };
        if to.values && skipped > 0 {
            to.sink.skip(&mut self.values, skipped)?;
        }
        if to.values && keep {
            to.sink.append(&mut self.values, from..to.lists.slots(), to.lists.valid())?;
        }
        Ok(ended)
    }
}

/// Appends the next `rows` rows, up to the end of the window: subtracts the number of rows that
/// begin in the window from `rows`. Returns whether all `rows` rows end in the window.
fn append_entries(
    window: &mut LevelWindow,
    lists: &mut ListsBuilder,
    rows: &mut usize,
) -> Result<bool, DecodeFault> {
    for_avx2!(
        fn[](
            window: &mut LevelWindow, lists: &mut ListsBuilder, rows: &mut usize,
        ) -> Result<bool, DecodeFault> = append_inline(window, lists, rows)
    )
}

#[inline(always)]
fn append_inline(
    window: &mut LevelWindow,
    lists: &mut ListsBuilder,
    rows: &mut usize,
) -> Result<bool, DecodeFault> {
    while window.at < window.n {
        let (word, now, ended) = window.next_segment(rows);
        lists.append_levels(window, word, now)?;
        if ended {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Skips rows as [`append_entries`] appends them. Adds the number of their valid values to
/// `values`.
fn count_skipped(window: &mut LevelWindow, values: &mut usize, rows: &mut usize) -> bool {
    while window.at < window.n {
        let (word, now, ended) = window.next_segment(rows);
        *values += count_ones(window.valid[word] & now);
        if ended {
            return true;
        }
    }
    false
}
