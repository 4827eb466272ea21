//! Finds where the records of CSV files end.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use datafusion::common::config::CsvOptions;
use datafusion::common::exec_err;
use datafusion::error::Result;
use memchr::{memchr, memchr2};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use serrate_core::internal::lock_mutex;

use crate::sql::sources::urls::format_location;

/// The state of the parser after the bytes read so far. These are the states of the crate
/// `csv-core`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecordState {
    StartRecord,
    StartField,
    InField,
    InQuotes,
    AfterEscape,
    /// After a quote in a quoted field: it ends the field, or is the first of two quotes.
    AfterQuote,
    InComment,
}

/// Finds the ends of records by the rules of `csv-core`: a quote counts only at the start of a
/// field, and a line break within quotes does not end a record.
#[derive(Clone, Debug)]
pub(in crate::sql) struct RecordSplitter {
    delimiter: u8,
    quote: u8,
    escape: Option<u8>,
    comment: Option<u8>,
    terminator: Option<u8>,
    state: RecordState,
    /// Number of bytes of [`MARK`] found so far at the start of the file. After a byte that differs
    /// from the mark, it is the length of the mark, so that no later byte is compared.
    marked: usize,
    /// Number of complete records read so far.
    pub(in crate::sql) ended: usize,
}

/// The byte order mark of UTF-8, which a file may begin with.
const MARK: &[u8] = b"\xEF\xBB\xBF";

impl RecordSplitter {
    pub(in crate::sql) fn new(options: &CsvOptions) -> Self {
        Self {
            delimiter: options.delimiter,
            quote: options.quote,
            escape: options.escape,
            comment: options.comment,
            terminator: options.terminator,
            state: RecordState::StartRecord,
            marked: 0,
            ended: 0,
        }
    }

    /// Returns the byte after which a byte range can begin: the terminator of records if one is
    /// set, else a line feed.
    fn line_end(&self) -> u8 {
        self.terminator.unwrap_or(b'\n')
    }

    fn is_end(&self, byte: u8) -> bool {
        match self.terminator {
            Some(terminator) => byte == terminator,
            None => matches!(byte, b'\n' | b'\r'),
        }
    }

    /// Returns the state after `byte`, which is outside quotes: a delimiter, a line break or any
    /// other byte. The caller handles a quote that begins a quoted field.
    fn find_state_after(&self, byte: u8) -> RecordState {
        if byte == self.delimiter {
            RecordState::StartField
        } else if self.is_end(byte) {
            RecordState::StartRecord
        } else {
            RecordState::InField
        }
    }

    fn read_byte(&mut self, byte: u8) {
        if let Some(expected) = MARK.get(self.marked) {
            if byte == *expected {
                self.marked = self.marked.saturating_add(1);
                return;
            }
            if self.marked > 0 {
                self.state = RecordState::InField;
            }
            self.marked = MARK.len();
        }
        let next = match self.state {
            RecordState::InQuotes if byte == self.quote => RecordState::AfterQuote,
            RecordState::InQuotes if Some(byte) == self.escape => RecordState::AfterEscape,
            RecordState::InQuotes | RecordState::AfterEscape => RecordState::InQuotes,
            RecordState::AfterQuote if byte == self.quote => RecordState::InQuotes,
            RecordState::InComment if byte == b'\n' => RecordState::StartRecord,
            RecordState::InComment => RecordState::InComment,
            RecordState::StartRecord if self.is_end(byte) => RecordState::StartRecord,
            RecordState::StartRecord if Some(byte) == self.comment => RecordState::InComment,
            RecordState::StartRecord | RecordState::StartField if byte == self.quote => {
                RecordState::InQuotes
            }
            _ => self.find_state_after(byte),
        };
        let was_in_record =
            !matches!(self.state, RecordState::StartRecord | RecordState::InComment);
        if was_in_record && next == RecordState::StartRecord {
            self.ended = self.ended.saturating_add(1);
        }
        self.state = next;
    }

    /// Reads bytes until `count` records have ended. Returns the number of bytes up to this end, or
    /// `None` if fewer records have ended after all bytes.
    pub(in crate::sql) fn read_records(&mut self, bytes: &[u8], count: usize) -> Option<usize> {
        for (at, byte) in bytes.iter().enumerate() {
            self.read_byte(*byte);
            if self.ended >= count {
                return Some(at.saturating_add(1));
            }
        }
        None
    }

    /// Reads bytes without counting records. Searches only for quotes, which alone change the
    /// meaning of line breaks.
    fn skip_bytes(&mut self, bytes: &[u8]) {
        if self.comment.is_some() {
            bytes.iter().for_each(|byte| self.read_byte(*byte));
            return;
        }
        let mut left = bytes;
        while let Some(first) = left.first() {
            let found = match self.state {
                _ if self.marked < MARK.len() => Some(0),
                RecordState::InQuotes => {
                    memchr2(self.quote, self.escape.unwrap_or(self.quote), left)
                }
                RecordState::AfterEscape | RecordState::AfterQuote => Some(0),
                _ => memchr(self.quote, left),
            };
            let at = match found {
                Some(0) => {
                    self.read_byte(*first);
                    left = left.get(1..).unwrap_or_default();
                    continue;
                }
                Some(at) => at,
                None => left.len(),
            };
            if self.state != RecordState::InQuotes
                && let Some(last) = left.get(at.saturating_sub(1))
            {
                self.state = self.find_state_after(*last);
            }
            left = left.get(at..).unwrap_or_default();
        }
    }

    /// Searches `bytes` from the position `from` on for a line break that is not within quotes.
    /// Returns the position after this line break, or `None` if there is none.
    fn find_line(&mut self, bytes: &[u8], from: usize) -> Option<usize> {
        let (before, after) = bytes.split_at_checked(from)?;
        self.skip_bytes(before);
        for (at, byte) in after.iter().enumerate() {
            self.read_byte(*byte);
            if self.state == RecordState::StartRecord && *byte == self.line_end() {
                return Some(from.saturating_add(at).saturating_add(1));
            }
        }
        None
    }
}

/// Distance in bytes between two positions of a file for which [`RecordMarks`] keeps the state.
const MARK_DISTANCE: u64 = 4 << 20;

/// The parser states at the positions 0, [`MARK_DISTANCE`], 2 [`MARK_DISTANCE`], .. of a file, as
/// far as the file has been read.
struct RecordMarks {
    states: Vec<RecordSplitter>,
}

/// A task holds the lock while it reads the file, so that no other task reads the same bytes.
type SharedMarks = Arc<tokio::sync::Mutex<RecordMarks>>;

/// Finds the first records in the byte ranges into which a scan divides files. Reads a file once
/// for all of its ranges.
#[derive(Clone, Default)]
pub(in crate::sql) struct RangeStarts {
    files: Arc<Mutex<HashMap<(Path, u64), SharedMarks>>>,
}

impl RangeStarts {
    /// Returns the first position at or after `at` at which a record, an empty line or a comment
    /// begins, or the size of the file if there is none.
    pub(in crate::sql) async fn find_start(
        &self,
        store: &Arc<dyn ObjectStore>,
        meta: &ObjectMeta,
        options: &CsvOptions,
        at: u64,
    ) -> Result<u64> {
        if at == 0 || at >= meta.size {
            return Ok(at.min(meta.size));
        }
        let marks = {
            let mut files = lock_mutex(&self.files);
            let key = (meta.location.clone(), meta.size);
            let marks = files.entry(key).or_insert_with(|| {
                let states = vec![RecordSplitter::new(options)];
                Arc::new(tokio::sync::Mutex::new(RecordMarks { states }))
            });
            Arc::clone(marks)
        };
        // Starts one byte before `at`: if this byte ends a line, a record begins at `at`.
        let before = at.saturating_sub(1);
        let mut step = before / MARK_DISTANCE;
        let mut records = {
            let mut marks = marks.lock().await;
            let wanted = usize::try_from(step).unwrap_or(usize::MAX);
            loop {
                if let Some(records) = marks.states.get(wanted) {
                    break records.clone();
                }
                let known = marks.states.len().saturating_sub(1);
                let start = u64::try_from(known).unwrap_or(u64::MAX).saturating_mul(MARK_DISTANCE);
                let bytes = read_step(store, meta, start).await?;
                let Some(mut records) = marks.states.last().cloned() else { return Ok(meta.size) };
                records.skip_bytes(bytes.as_ref());
                marks.states.push(records);
            }
        };
        let mut from = before.saturating_sub(step.saturating_mul(MARK_DISTANCE));
        loop {
            let start = step.saturating_mul(MARK_DISTANCE);
            if start >= meta.size {
                return Ok(meta.size);
            }
            let bytes = read_step(store, meta, start).await?;
            let within = usize::try_from(from).unwrap_or(usize::MAX);
            if let Some(found) = records.find_line(&bytes, within) {
                return Ok(start.saturating_add(u64::try_from(found).unwrap_or(0)));
            }
            (step, from) = (step.saturating_add(1), 0);
        }
    }
}

/// Returns an error if the file of `meta` ends within quotes, because its last value would then
/// have the records after the quote. A record begins at the position `start`.
pub(in crate::sql) async fn check_closed_quotes(
    store: &Arc<dyn ObjectStore>,
    meta: &ObjectMeta,
    options: &CsvOptions,
    start: u64,
) -> Result<()> {
    let mut records = RecordSplitter::new(options);
    if start > 0 {
        records.marked = MARK.len();
    }
    let mut at = start;
    while at < meta.size {
        records.skip_bytes(&read_step(store, meta, at).await?);
        at = at.saturating_add(MARK_DISTANCE);
    }
    match records.state {
        RecordState::InQuotes | RecordState::AfterEscape => exec_err!(
            "{}: the file ends within the quotes of a value, which would hold all lines after its first quote; close the quotes, or set the option quote to a character that the file does not have",
            format_location(&meta.location)
        ),
        _ => Ok(()),
    }
}

async fn read_step(
    store: &Arc<dyn ObjectStore>,
    meta: &ObjectMeta,
    start: u64,
) -> Result<bytes::Bytes> {
    let end = start.saturating_add(MARK_DISTANCE).min(meta.size);
    Ok(store.get_range(&meta.location, start..end).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipping_and_stepping_have_one_state() {
        let texts = [
            "a,b\n\"x\ny\",2\n",
            "5\" pipe,\"q\"\"q\n\"\r\n\r\n3,4",
            "\"a\\\"\n\",b\n\"\"\n",
            "#\"\nx,\"#\n\"\n",
            "\"open\n1,2\n",
            "len_\",b\n\"a\"b\"c,\"d\n",
            "\u{feff}\"a\nb\",c\n",
        ];
        for text in texts {
            for (escape, comment) in
                [(None, None), (Some(b'\\'), None), (None, Some(b'#')), (Some(b'\\'), Some(b'#'))]
            {
                let options = CsvOptions { escape, comment, ..CsvOptions::default() };
                for cut in 0..=text.len() {
                    let mut stepped = RecordSplitter::new(&options);
                    text.as_bytes()[..cut].iter().for_each(|byte| stepped.read_byte(*byte));
                    for middle in 0..=cut {
                        let mut skipped = RecordSplitter::new(&options);
                        skipped.skip_bytes(&text.as_bytes()[..middle]);
                        skipped.skip_bytes(&text.as_bytes()[middle..cut]);
                        assert_eq!(skipped.state, stepped.state, "{text:?} {cut} {middle}");
                    }
                }
            }
        }
    }

    #[test]
    fn records_end_outside_quotes() {
        let options = CsvOptions::default();
        let ends =
            |text: &str, count| RecordSplitter::new(&options).read_records(text.as_bytes(), count);
        assert_eq!(ends("a,b\n1,2\n", 1), Some(4));
        assert_eq!(ends("\"a\nb\",c\r\n1", 1), Some(8));
        assert_eq!(ends("\n\nlen_\",b\n1\n", 1), Some(10));
        assert_eq!(ends("\u{feff}\"a\nb\"\n1\n", 1), Some(9));
        assert_eq!(ends("a,b", 1), None);
        assert_eq!(RecordSplitter::new(&options).find_line(b"\"a\nb\"\nc\n", 1), Some(6));
    }
}
