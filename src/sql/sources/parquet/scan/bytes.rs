use std::ops::Range;

use bytes::{Buf, Bytes};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};
use serrate_core::internal::safetensors::coalesce_ranges;

/// Fetched byte ranges of a file, sorted by start.
#[derive(Clone, Debug)]
pub(super) struct FetchedBytes {
    size: u64,
    blocks: Vec<(u64, Bytes)>,
}

impl FetchedBytes {
    pub(super) fn new(size: u64) -> Self {
        Self { size, blocks: Vec::new() }
    }

    /// Returns the `ranges` that are not in memory, sorted. Merges two ranges if the gap between
    /// them is at most [`MAX_GAP_BYTES`], because reading the gap takes less time than a further
    /// request.
    pub(super) fn find_missing(&self, mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
        ranges.retain(|range| range.start < range.end && self.find_bytes(range).is_none());
        coalesce_ranges(ranges, MAX_GAP_BYTES)
    }

    pub(super) fn add(&mut self, more: impl IntoIterator<Item = (u64, Bytes)>) {
        self.blocks.extend(more);
        self.blocks.sort_by_key(|(start, _)| *start);
    }

    /// If one fetched range contains the whole `range`, returns the bytes of the fetched range from
    /// the start of `range` on. Returns `None` if no fetched range contains it.
    fn find_bytes(&self, range: &Range<u64>) -> Option<Bytes> {
        // Fetched ranges may overlap, because a later request may cover an earlier one.
        let candidates = self.blocks.partition_point(|(start, _)| *start <= range.start);
        self.blocks[..candidates].iter().rev().find_map(|(start, bytes)| {
            let from = usize::try_from(range.start - start).ok()?;
            let len = usize::try_from(range.end - range.start).ok()?;
            let end = from.checked_add(len)?;
            (end <= bytes.len()).then(|| bytes.slice(from..))
        })
    }
}

/// Maximum gap in bytes between two ranges that are merged into one request.
const MAX_GAP_BYTES: u64 = 64 << 10;

impl Length for FetchedBytes {
    fn len(&self) -> u64 {
        self.size
    }
}

impl ChunkReader for FetchedBytes {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        match self.find_bytes(&(start..start.saturating_add(1))) {
            Some(bytes) => Ok(bytes.reader()),
            None => Err(make_absent_error(start, 1)),
        }
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let end = start.saturating_add(length as u64);
        match self.find_bytes(&(start..end)) {
            Some(bytes) => Ok(bytes.slice(..length)),
            None if length == 0 => Ok(Bytes::new()),
            None => Err(make_absent_error(start, length)),
        }
    }
}

fn make_absent_error(start: u64, length: usize) -> ParquetError {
    ParquetError::EOF(format!(
        "the bytes at {start} (length: {length}) lie outside the column chunk that the footer describes; \
         create the file again"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_not_fetched_again() {
        let file: Vec<u8> = (0..=255).cycle().take(1 << 20).collect();
        let block = |range: Range<u64>| {
            let at = |place: u64| usize::try_from(place).unwrap();
            let part = &file[at(range.start)..at(range.end)];
            (range.start, Bytes::copy_from_slice(part))
        };
        let mut fetched = FetchedBytes::new(1 << 20);
        assert_eq!(
            fetched.find_missing(vec![300_000..300_010, 10..20, 15..30]),
            [10..30, 300_000..300_010]
        );
        fetched.add([block(300_000..300_010), block(10..30)]);
        assert!(fetched.find_missing(vec![12..30, 300_001..300_010, 7..7]).is_empty());
        let more = fetched.find_missing(std::iter::once(12..31).collect());
        assert_eq!(more.as_slice(), std::slice::from_ref(&(12..31)));
        assert_eq!(fetched.get_bytes(12, 3).unwrap(), Bytes::from_static(&[12, 13, 14]));
        assert!(fetched.get_bytes(28, 3).is_err());
        assert!(fetched.get_bytes(u64::MAX, 3).is_err());
        fetched.add([block(0..40)]);
        assert_eq!(fetched.get_bytes(28, 3).unwrap(), Bytes::from_static(&[28, 29, 30]));
        assert_eq!(fetched.get_bytes(12, 3).unwrap(), Bytes::from_static(&[12, 13, 14]));
        assert!(fetched.get_read(29).is_ok() && fetched.get_read(500).is_err());
    }
}
