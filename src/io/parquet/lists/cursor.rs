//! A column read on and on: rows are passed over or appended, page after page, chunk after chunk.

use std::fmt;
use std::ops::Range;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use parquet::file::reader::ChunkReader;

use super::bits::ones;
use super::hybrid::Fault;
use super::lists::Lists;
use super::pages::{Chunk, DataPage, Pages, Part, Place};
use super::shape::Shape;
use super::values::{Encoded, Sink, sink};
use super::window::{ENTRIES, Window};
use super::{Parts, Source};
use crate::error::Result;
#[cfg(target_arch = "x86_64")]
use crate::kernels::bits::has_avx2;

/// Entries that a byte of a compressed chunk is expected to hold at most; more make memory grow as it goes.
const ENTRIES_PER_BYTE: u64 = 16;

/// Most values that memory is asked for before they are there.
const MOST_EXPECTED: usize = 1 << 28;

/// A page in progress.
#[derive(Debug)]
struct Open {
    /// Without the entries in the window.
    page: DataPage,
    values: Encoded,
}

/// A row group in progress.
struct Cursor<R: ChunkReader> {
    pages: Pages<R>,
    place: Place,
    open: Option<Open>,
    window: Box<Window>,
    /// Entries that pages may still have.
    entries: usize,
    /// Whether all pages of the chunk are read, so that its entries can be counted.
    whole: bool,
    /// Rows that were begun, and how many there are.
    rows: usize,
    all: usize,
}

/// Rows of one column, as one array.
pub(super) struct Reader<R: ChunkReader> {
    shape: Shape,
    parts: Parts,
    lists: Lists,
    sink: Box<dyn Sink>,
    cursor: Option<Cursor<R>>,
}

impl<R: ChunkReader> fmt::Debug for Reader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("shape", &self.shape).finish_non_exhaustive()
    }
}

impl<R: ChunkReader> Reader<R> {
    pub(super) fn new(shape: Shape, parts: Parts) -> Self {
        Self { lists: Lists::new(&shape), sink: sink(shape.leaf), cursor: None, parts, shape }
    }

    /// Goes to a row group; rows `rows` of it are what will be read.
    pub(super) fn open(
        &mut self,
        source: &Source<'_, R>,
        group: usize,
        rows: &Range<usize>,
    ) -> Result<()> {
        let chunk = Chunk::new(source.name, source.metadata, group, self.shape.column)?;
        chunk.check_rows(rows)?;
        let selected = chunk.pages_of(rows);
        let (window, held) = selected.unzip();
        let held = held.unwrap_or(0..chunk.rows);
        let pages = Pages::new(source, &chunk, &self.shape, window.clone())?;
        self.sink.forget();
        self.cursor = Some(Cursor {
            pages,
            place: chunk.place,
            open: None,
            window: Box::new(Window::new(&self.shape)),
            entries: chunk.entries,
            whole: window.is_none(),
            rows: 0,
            all: held.len(),
        });
        self.advance(rows.start - held.start, false)
    }

    /// About how many values, null ones included, rows of a row group have.
    pub(super) fn expected(
        &self,
        source: &Source<'_, R>,
        group: usize,
        rows: usize,
    ) -> Result<usize> {
        let chunk = Chunk::new(source.name, source.metadata, group, self.shape.column)?;
        let bytes = chunk.bytes.end.min(source.reader.len()).saturating_sub(chunk.bytes.start);
        let most = usize::try_from(bytes.saturating_mul(ENTRIES_PER_BYTE)).unwrap_or(usize::MAX);
        let entries = chunk.entries.min(most) as u128 * rows as u128;
        let entries = entries.div_ceil(chunk.rows.max(1) as u128);
        Ok(usize::try_from(entries).unwrap_or(most).min(most))
    }

    /// Memory for this many values.
    pub(super) fn reserve(&mut self, values: usize) {
        if self.parts == Parts::Values {
            let values = values.min(MOST_EXPECTED);
            // Only a hint: what there is no room for is an error once it is there.
            let _ = self.sink.room(values);
        }
    }

    /// Appends the next rows of the row group.
    pub(super) fn append(&mut self, rows: usize) -> Result<()> {
        self.advance(rows, true)
    }

    /// Passes over the next rows of the row group.
    pub(super) fn skip(&mut self, rows: usize) -> Result<()> {
        self.advance(rows, false)
    }

    /// What was appended, as an array of type `data_type`.
    pub(super) fn finish(&mut self, data_type: &DataType) -> Result<ArrayRef> {
        let lists = std::mem::replace(&mut self.lists, Lists::new(&self.shape));
        let slots = lists.slots();
        lists.finish(data_type, |leaf, nulls| self.sink.finish(slots, leaf, nulls))
    }

    fn advance(&mut self, rows: usize, keep: bool) -> Result<()> {
        let Self { shape, parts, lists, sink, cursor, .. } = self;
        let Some(cursor) = cursor else { return Ok(()) };
        let mut steps = Steps { shape, values: *parts == Parts::Values, lists, sink: &mut **sink };
        cursor.advance(&mut steps, rows, keep)
    }
}

/// Where a cursor leaves what it reads.
struct Steps<'a> {
    shape: &'a Shape,
    values: bool,
    lists: &'a mut Lists,
    sink: &'a mut dyn Sink,
}

impl<R: ChunkReader> Cursor<R> {
    /// Goes on by whole rows, which end where the next one begins.
    fn advance(&mut self, to: &mut Steps<'_>, mut rows: usize, keep: bool) -> Result<()> {
        if rows == 0 {
            return Ok(());
        }
        loop {
            let Some(open) = &mut self.open else {
                if !self.next_page(to)? {
                    return self.ended(rows);
                }
                let page = self.open.as_ref().filter(|_| !keep);
                let passed = page.map_or(Ok(false), |page| page.pass(&mut rows, &mut self.rows));
                if passed.map_err(|fault| self.place.page(&fault))? {
                    self.open = None;
                }
                continue;
            };
            let ended = open
                .advance(&mut self.window, to, &mut rows, &mut self.rows, keep)
                .map_err(|fault| self.place.page(&fault))?;
            if self.rows > self.all {
                return Err(self.place.page(&Fault::new(format!(
                    "a row more than the {} there should be",
                    self.all
                ))));
            }
            if ended {
                return Ok(());
            }
            self.open = None;
        }
    }

    /// No page is left; the rows that are due are there if none is missing.
    fn ended(&self, rows: usize) -> Result<()> {
        if rows > 0 || self.rows != self.all {
            return Err(self.place.error(format!(
                "its pages have {} row(s), where there should be {}",
                self.rows, self.all
            )));
        }
        if self.whole && self.entries > 0 {
            return Err(self.place.error(format!(
                "the footer counts {} value(s) more than its pages have",
                self.entries
            )));
        }
        Ok(())
    }

    /// Opens the next data page, if there is one.
    fn next_page(&mut self, to: &mut Steps<'_>) -> Result<bool> {
        loop {
            match self.pages.next(&mut self.place)? {
                None => return Ok(false),
                Some(Part::Dictionary { values, count }) => {
                    if to.values {
                        let kept = to.sink.dictionary(&values, count);
                        kept.map_err(|fault| self.place.error(fault.0))?;
                    }
                }
                Some(Part::Data(page)) => {
                    let Some(left) = self.entries.checked_sub(page.entries) else {
                        return Err(self.place.page(&Fault::new(format!(
                            "{} value(s), where the footer leaves {} for it",
                            page.entries, self.entries
                        ))));
                    };
                    self.entries = left;
                    let values = if to.values {
                        Encoded::new(page.encoding, page.values.clone(), to.shape.leaf)
                            .map_err(|fault| self.place.page(&fault))?
                    } else {
                        Encoded::Plain(bytes::Bytes::new())
                    };
                    self.open = Some(Open { page, values });
                    return Ok(true);
                }
            }
        }
    }
}

impl Open {
    /// Whether all of a page, of which nothing was read, belongs to the rows that are passed over: only where
    /// rows begin is looked at.
    fn pass(&self, rows: &mut usize, begun: &mut usize) -> Result<bool, Fault> {
        let zeros = |entries| self.page.rep.clone().zeros(entries);
        let starts = zeros(self.page.entries)?;
        let goes_on = self.page.entries > 0 && zeros(1)? == 0;
        if starts > *rows || *begun == 0 && goes_on {
            return Ok(false);
        }
        *rows -= starts;
        *begun += starts;
        Ok(true)
    }

    /// Whether the rows ended within the page; it is used up otherwise.
    fn advance(
        &mut self,
        window: &mut Window,
        to: &mut Steps<'_>,
        rows: &mut usize,
        begun: &mut usize,
        keep: bool,
    ) -> Result<bool, Fault> {
        let from = to.lists.slots();
        let mut skipped = 0;
        let ended = loop {
            if window.at == window.n {
                let n = self.page.entries.min(ENTRIES);
                if n == 0 {
                    break false;
                }
                self.page.entries -= n;
                window.refill(&mut self.page.rep, &mut self.page.def, n, to.shape)?;
                if *begun == 0 && window.rows[0] & 1 == 0 {
                    return Err(Fault::new("its first entry goes on with a row never begun"));
                }
            }
            let left = *rows;
            let ended = if keep {
                append(window, to.lists, rows)?
            } else {
                skip(window, &mut skipped, rows)
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

/// Appends entries until the window or the rows end; whether it was the rows.
fn append(window: &mut Window, lists: &mut Lists, rows: &mut usize) -> Result<bool, Fault> {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
        fn wide(window: &mut Window, lists: &mut Lists, rows: &mut usize) -> Result<bool, Fault> {
            append_any(window, lists, rows)
        }
        if has_avx2() {
            // SAFETY: the processor has what the function was compiled for.
            return unsafe { wide(window, lists, rows) };
        }
    }
    append_any(window, lists, rows)
}

#[inline(always)]
fn append_any(window: &mut Window, lists: &mut Lists, rows: &mut usize) -> Result<bool, Fault> {
    while window.at < window.n {
        let (word, now, ended) = window.step(rows);
        lists.append(window, word, now)?;
        if ended {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Counts values until the window or the rows end; whether it was the rows.
fn skip(window: &mut Window, values: &mut usize, rows: &mut usize) -> bool {
    while window.at < window.n {
        let (word, now, ended) = window.step(rows);
        *values += ones(window.valid[word] & now);
        if ended {
            return true;
        }
    }
    false
}
