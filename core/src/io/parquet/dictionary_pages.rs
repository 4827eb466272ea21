//! Checks dictionary pages before the `parquet` crate decodes them.
//!
//! The crate allocates as many numbers as the header of a dictionary page declares, and only then
//! decodes the page, so that a damaged header of a few bytes may take 32 GB and end the process.
//! Dictionaries of strings and of bytes are checked by the crate. This module is obsolete once the
//! test `parquet_dictionaries_with_more_numbers_than_bytes_are_errors` finds that the crate takes
//! no more memory. The crate's parser of page headers is private; the one in this module skips the
//! fields that it does not need. Format:
//! <https://parquet.apache.org/docs/file-format/data-pages/> and
//! <https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>.

use std::io::{self, Read};
use std::ops::Range;

use parquet::basic::{Compression, Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::reader::ChunkReader;

/// Nesting depth of a page header at which its parser gives up. Headers have a depth of 3.
const MAX_DEPTH: usize = 16;

/// Checks the dictionaries in the row groups `groups` of a file, for the leaf columns that `is_read`
/// accepts by their index.
///
/// # Errors
/// If the file cannot be read, or a dictionary cannot have as many numbers as its header declares.
pub(crate) fn check_dictionaries<R: ChunkReader>(
    file: &R,
    metadata: &ParquetMetaData,
    groups: impl Iterator<Item = usize>,
    is_read: impl Fn(usize) -> bool,
) -> Result<()> {
    for group in groups {
        let columns = metadata.row_group(group).columns().iter().enumerate();
        for (_, chunk) in columns.filter(|(column, _)| is_read(*column)) {
            // The `parquet` crate rejects chunks without a valid byte range.
            let bytes = find_chunk_bytes(chunk).filter(|_| compute_width(chunk).is_some());
            if let Some(bytes) = bytes {
                check_pages(file, bytes, || Some(chunk))?;
            }
        }
    }
    Ok(())
}

/// Checks the dictionaries in `bytes`, a byte range of a file that starts at the offset `start`.
/// Accepts ranges that do not begin with a page header.
///
/// # Errors
/// If a dictionary cannot have as many numbers as its header declares.
pub fn check_fetched_dictionaries(
    bytes: &bytes::Bytes,
    start: u64,
    metadata: &ParquetMetaData,
) -> Result<()> {
    let chunks = || metadata.row_groups().iter().flat_map(|group| group.columns());
    check_pages(bytes, 0..bytes.len() as u64, || {
        chunks().find(|chunk| find_chunk_bytes(chunk).is_some_and(|bytes| bytes.contains(&start)))
    })
}

/// Returns the byte range of a column chunk in the file, or `None` if the offset or size in the
/// footer is negative, or their sum exceeds `u64`.
pub fn find_chunk_bytes(chunk: &ColumnChunkMetaData) -> Option<Range<u64>> {
    let start = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
    let start = u64::try_from(start).ok()?;
    let size = u64::try_from(chunk.compressed_size()).ok()?;
    Some(start..start.checked_add(size)?)
}

/// Checks the dictionaries of the pages in the range `pages` of a file, up to the first bytes that
/// are not a page. `find_chunk` returns the column chunk of the pages.
fn check_pages<'a, R: ChunkReader>(
    file: &R,
    pages: Range<u64>,
    find_chunk: impl Fn() -> Option<&'a ColumnChunkMetaData>,
) -> Result<()> {
    let end = pages.end.min(file.len());
    let mut at = pages.start;
    while at < end {
        let mut reader = CompactReader { reader: file.get_read(at)?, length: 0 };
        // The `parquet` crate reports headers that cannot be parsed.
        let Ok(page) = reader.read_page_header() else { return Ok(()) };
        let (Ok(stored), Ok(decoded)) = (u64::try_from(page.stored), u64::try_from(page.decoded))
        else {
            return Ok(());
        };
        // The crate reports negative numbers.
        let numbers = u64::try_from(page.dictionary_values.unwrap_or(0)).unwrap_or(0);
        if numbers > stored
            && let Some(chunk) = find_chunk()
            && let Some(width) = compute_width(chunk)
        {
            // The crate compares the size of a decompressed page with its header.
            let is_plain = matches!(chunk.compression(), Compression::UNCOMPRESSED);
            let bytes = if is_plain { stored } else { decoded };
            if numbers * width > bytes {
                return Err(ParquetError::General(format!(
                    "the dictionary of column {} declares {numbers} numbers of {width} bytes, but its page has {bytes} bytes, so the file is damaged; create it again",
                    chunk.column_path()
                )));
            }
        }
        at = at.saturating_add(reader.length).saturating_add(stored);
    }
    Ok(())
}

/// Returns the number of bytes per value of a column of numbers.
fn compute_width(chunk: &ColumnChunkMetaData) -> Option<u64> {
    match chunk.column_type() {
        Type::INT32 | Type::FLOAT => Some(4),
        Type::INT64 | Type::DOUBLE => Some(8),
        Type::INT96 => Some(12),
        Type::BOOLEAN | Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY => None,
    }
}

/// The fields of a page header that the check needs.
#[derive(Debug, PartialEq)]
struct PageHeader {
    /// Size of the page in the file, in bytes.
    stored: i32,
    /// Size of the decompressed page, in bytes.
    decoded: i32,
    /// Number of values, if the page is a dictionary.
    dictionary_values: Option<i32>,
}

/// Reads Thrift's compact protocol, and counts the bytes.
struct CompactReader<R> {
    reader: R,
    length: u64,
}

/// Types of fields in Thrift's compact protocol.
mod field_type {
    pub(super) const STOP: u8 = 0;
    pub(super) const TRUE: u8 = 1;
    pub(super) const FALSE: u8 = 2;
    pub(super) const BYTE: u8 = 3;
    pub(super) const I16: u8 = 4;
    pub(super) const I32: u8 = 5;
    pub(super) const I64: u8 = 6;
    pub(super) const DOUBLE: u8 = 7;
    pub(super) const BINARY: u8 = 8;
    pub(super) const LIST: u8 = 9;
    pub(super) const SET: u8 = 10;
    pub(super) const MAP: u8 = 11;
    pub(super) const STRUCT: u8 = 12;
}

impl<R: Read> CompactReader<R> {
    /// Reads a page header. A header without the sizes of its page is a fault, as in the `parquet`
    /// crate; otherwise, each byte of a range of zeros would be a page.
    fn read_page_header(&mut self) -> io::Result<PageHeader> {
        let (mut stored, mut decoded, mut dictionary_values) = (None, None, None);
        let mut field = 0;
        while let Some(kind) = self.read_field(&mut field)? {
            match (field, kind) {
                (2, field_type::I32) => decoded = Some(self.read_i32()?),
                (3, field_type::I32) => stored = Some(self.read_i32()?),
                (7, field_type::STRUCT) => dictionary_values = self.read_dictionary_values()?,
                _ => self.skip_value(kind, 0)?,
            }
        }
        let (Some(stored), Some(decoded)) = (stored, decoded) else {
            return Err(make_fault("the header lacks the size of its page"));
        };
        Ok(PageHeader { stored, decoded, dictionary_values })
    }

    /// Reads the header of a dictionary, and returns its number of values.
    fn read_dictionary_values(&mut self) -> io::Result<Option<i32>> {
        let (mut field, mut values) = (0, None);
        while let Some(kind) = self.read_field(&mut field)? {
            match (field, kind) {
                (1, field_type::I32) => values = Some(self.read_i32()?),
                _ => self.skip_value(kind, 1)?,
            }
        }
        Ok(values)
    }

    /// Reads the header of a field and returns the type of the field, or `None` at the end of the
    /// struct. `field` is the number of the previous field before the call, and of this field after
    /// it.
    fn read_field(&mut self, field: &mut i64) -> io::Result<Option<u8>> {
        let byte = self.read_byte()?;
        let (kind, step) = (byte & 0x0f, byte >> 4);
        if kind == field_type::STOP {
            return Ok(None);
        }
        *field = match step {
            0 => self.read_integer()?,
            step => field.saturating_add(i64::from(step)),
        };
        Ok(Some(kind))
    }

    fn skip_value(&mut self, kind: u8, depth: usize) -> io::Result<()> {
        if depth > MAX_DEPTH {
            return Err(make_fault("the header is nested too deep"));
        }
        match kind {
            field_type::TRUE | field_type::FALSE => {}
            field_type::BYTE => drop(self.read_byte()?),
            field_type::I16 | field_type::I32 | field_type::I64 => drop(self.read_varint()?),
            field_type::DOUBLE => self.skip_bytes(8)?,
            field_type::BINARY => {
                let length = self.read_varint()?;
                self.skip_bytes(length)?;
            }
            field_type::LIST | field_type::SET => {
                let byte = self.read_byte()?;
                let items = match byte >> 4 {
                    0x0f => self.read_varint()?,
                    items => u64::from(items),
                };
                for _ in 0..items {
                    self.skip_item(byte & 0x0f, depth + 1)?;
                }
            }
            field_type::MAP => {
                let items = self.read_varint()?;
                if items > 0 {
                    let kinds = self.read_byte()?;
                    for _ in 0..items {
                        self.skip_item(kinds >> 4, depth + 1)?;
                        self.skip_item(kinds & 0x0f, depth + 1)?;
                    }
                }
            }
            field_type::STRUCT => {
                let mut field = 0;
                while let Some(kind) = self.read_field(&mut field)? {
                    self.skip_value(kind, depth + 1)?;
                }
            }
            _ => return Err(make_fault("the header has a field of an unknown type")),
        }
        Ok(())
    }

    /// Skips an item of a list, set or map, in which booleans take a byte.
    fn skip_item(&mut self, kind: u8, depth: usize) -> io::Result<()> {
        match kind {
            field_type::TRUE | field_type::FALSE => self.read_byte().map(drop),
            _ => self.skip_value(kind, depth),
        }
    }

    fn read_i32(&mut self) -> io::Result<i32> {
        i32::try_from(self.read_integer()?).map_err(|_| make_fault("the number is too large"))
    }

    /// Reads an integer in zigzag encoding.
    fn read_integer(&mut self) -> io::Result<i64> {
        let value = self.read_varint()?;
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    fn read_varint(&mut self) -> io::Result<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.read_byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(make_fault("the number takes more than 10 bytes"))
    }

    fn read_byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        self.reader.read_exact(&mut byte)?;
        self.length += 1;
        Ok(byte[0])
    }

    fn skip_bytes(&mut self, length: u64) -> io::Result<()> {
        let skipped = io::copy(&mut self.reader.by_ref().take(length), &mut io::sink())?;
        self.length += skipped;
        if skipped == length { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

fn make_fault(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses a header, and returns it with the number of its bytes.
    fn parse_header(bytes: &[u8]) -> Option<(PageHeader, u64)> {
        let mut reader = CompactReader { reader: bytes, length: 0 };
        reader.read_page_header().ok().map(|header| (header, reader.length))
    }

    #[test]
    fn headers_of_dictionaries_have_a_number_of_values() {
        // type = 2, sizes 176 and 88, dictionary { values = 22, encoding = 0 }.
        let bytes = [0x15, 4, 0x15, 0xe0, 2, 0x15, 0xb0, 1, 0x4c, 0x15, 44, 0x15, 0, 0, 0, 99];
        let header = PageHeader { stored: 88, decoded: 176, dictionary_values: Some(22) };
        assert_eq!(parse_header(&bytes), Some((header, 15)));
        assert!((0..15).all(|end| parse_header(&bytes[..end]).is_none()));
    }

    #[test]
    fn other_fields_are_skipped() {
        let mut bytes = vec![0x15, 0, 0x15, 20, 0x15, 40];
        bytes.extend([0x18, 2, 7, 7]); // 4: two bytes
        bytes.extend([0x1c, 0x15, 2, 0x28, 1, 9, 0]); // 5: a struct of an integer and a byte
        bytes.extend([0x19, 0x21, 1, 2]); // 6: a list of two booleans
        bytes.extend([0x2b, 1, 0x85, 1, 5, 2]); // 8: a map from a string to an integer
        bytes.extend([0x17, 0, 0, 0, 0, 0, 0, 0, 0]); // 9: a double
        bytes.extend([0x08, 40, 0]); // 20: an empty binary
        bytes.push(0);
        let header = PageHeader { stored: 20, decoded: 10, dictionary_values: None };
        assert_eq!(parse_header(&bytes), Some((header, bytes.len() as u64)));
    }

    #[test]
    fn headers_without_sizes_are_faults() {
        assert_eq!(parse_header(&[0; 100]), None);
        assert_eq!(parse_header(&[0x15, 4, 0x15, 20, 0]), None);
    }

    #[test]
    fn endless_headers_are_faults() {
        assert_eq!(parse_header(&[0x1c; 1000]), None);
        assert_eq!(parse_header(&[0x19; 1000]), None);
        assert_eq!(parse_header(&[0xff; 1000]), None);
        assert_eq!(parse_header(&[0x18, 0xff, 0xff, 0xff, 0x7f, 1]), None);
    }
}
