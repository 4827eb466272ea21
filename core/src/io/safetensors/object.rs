//! Reads byte ranges of an object: merges ranges that are close to each other into one request, and
//! checks that all requests read the same version of the object.

#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use std::io::ErrorKind::NotFound;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::path::Path as Location;
use object_store::{GetOptions, GetRange, GetResult, ObjectStore};

use super::header::{PREFIX_BYTES, SafetensorsHeader};
use crate::error::{Error, Result};

pub(crate) type FetchedPart = (u64, Bytes);

/// Options for reading files from an object store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ObjectOptions {
    /// Whether every axis has 64-bit offsets; see
    /// [`ReadOptions::large_lists`](crate::io::nrt::ReadOptions).
    pub large_lists: bool,
    /// Number of bytes that the first request reads: a small object as a whole, or the header of a
    /// larger object (or the beginning of a long header).
    pub head: u64,
    /// Ranges at most this many bytes apart are fetched with one request, together with the bytes
    /// between them. A request takes tens of milliseconds in the cloud, usually longer than the
    /// transfer.
    pub gap: u64,
    /// Maximum number of bytes per request. A longer range is fetched with several requests.
    pub largest: u64,
    /// Maximum number of concurrent requests.
    pub parallel: usize,
}

impl Default for ObjectOptions {
    /// Defaults: `head` is 16 KiB, `gap` is 64 KiB, `largest` is 8 MiB, and `parallel` is 8.
    fn default() -> Self {
        Self { large_lists: false, head: 16 << 10, gap: 64 << 10, largest: 8 << 20, parallel: 8 }
    }
}

/// One version of a file in an object store, with counters of the requests and of the bytes read.
#[derive(Debug)]
pub(crate) struct StoredObject {
    store: Arc<dyn ObjectStore>,
    location: Location,
    name: PathBuf,
    len: u64,
    /// ETag that later requests must match; `None` if it is missing or weak.
    e_tag: Option<String>,
    options: ObjectOptions,
    requests: AtomicU64,
    bytes: AtomicU64,
}

impl StoredObject {
    /// Opens an object, given the response `first` to the request for its first
    /// [`ObjectOptions::head`] bytes; also returns these bytes. `expected` is the size of the
    /// object in the listing.
    pub(crate) async fn from_first(
        store: Arc<dyn ObjectStore>,
        location: Location,
        name: PathBuf,
        first: GetResult,
        expected: Option<u64>,
        options: ObjectOptions,
    ) -> Result<(Self, FetchedPart)> {
        let len = first.meta.size;
        if let Some(expected) = expected.filter(|e| *e != len) {
            return Err(Error::file(
                name,
                format!(
                    "the object has {len} bytes, but had {expected} when it was listed, so it was replaced; list it again (in SQL, run the query again)"
                ),
            ));
        }
        let object = Self {
            store,
            location,
            name,
            len,
            // A weak ETag does not identify bytes, so a request cannot require it.
            e_tag: first.meta.e_tag.clone().filter(|tag| !tag.starts_with("W/")),
            options,
            requests: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        };
        let range = 0..options.head.max(PREFIX_BYTES).min(len);
        let head = object.check_object_bytes(range, first).await?;
        Ok((object, (0, head)))
    }

    #[cfg(feature = "sql")]
    pub(crate) fn copy_without_counts(&self) -> Self {
        Self {
            store: Arc::clone(&self.store),
            location: self.location.clone(),
            name: self.name.clone(),
            len: self.len,
            e_tag: self.e_tag.clone(),
            options: self.options,
            requests: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        }
    }

    #[cfg(feature = "sql")]
    pub(crate) fn is_of(&self, store: &Arc<dyn ObjectStore>, e_tag: Option<&str>) -> bool {
        let known = self.e_tag.as_deref().zip(e_tag.filter(|tag| !tag.starts_with("W/")));
        Arc::ptr_eq(&self.store, store) && known.is_none_or(|(a, b)| a == b)
    }

    /// Opens an object; also returns its first bytes, which the first request reads.
    pub(crate) async fn open(
        store: Arc<dyn ObjectStore>,
        location: Location,
        name: PathBuf,
        options: ObjectOptions,
    ) -> Result<(Self, FetchedPart)> {
        let first = store
            .get_opts(&location, make_first_request(&options))
            .await
            .map_err(|e| convert_store_error(&name, e))?;
        Self::from_first(store, location, name, first, None, options).await
    }

    pub(crate) fn name(&self) -> &Path {
        &self.name
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn options(&self) -> &ObjectOptions {
        &self.options
    }

    pub(crate) fn bytes_read(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    pub(crate) async fn read_header(
        &self,
        head: FetchedPart,
    ) -> Result<(SafetensorsHeader, Vec<FetchedPart>)> {
        let json_len = SafetensorsHeader::json_len(&self.name, &head.1, self.len)?;
        let end = PREFIX_BYTES.saturating_add(json_len);
        let known = u64::try_from(head.1.len()).unwrap_or(u64::MAX);
        let mut json = head.1.to_vec();
        let mut parts = vec![head];
        if end > known {
            for (start, bytes) in self.fetch_ranges(std::iter::once(known..end)).await? {
                json.extend_from_slice(&bytes);
                parts.push((start, bytes));
            }
        }
        let range = usize::try_from(PREFIX_BYTES).ok().zip(usize::try_from(end).ok());
        let json = range.and_then(|(from, to)| json.get(from..to)).unwrap_or_default();
        let header = SafetensorsHeader::parse(&self.name, json, self.len)?;
        Ok((header, parts))
    }

    /// Fetches ranges concurrently; ranges at most [`ObjectOptions::gap`] apart share a request,
    /// and a range longer than [`ObjectOptions::largest`] takes several.
    pub(crate) async fn fetch_ranges(
        &self,
        ranges: impl IntoIterator<Item = Range<u64>>,
    ) -> Result<Vec<FetchedPart>> {
        let ranges = coalesce_ranges(ranges.into_iter().collect(), self.options.gap);
        let largest = self.options.largest.max(1);
        let pieces = ranges.iter().flat_map(|range| {
            let starts = std::iter::successors(Some(range.start), move |at| {
                at.checked_add(largest).filter(|next| *next < range.end)
            });
            starts.map(move |at| at..at.saturating_add(largest).min(range.end))
        });
        let pieces: Vec<Range<u64>> = pieces.collect();
        let mut answers = stream::iter(pieces.into_iter().map(|piece| self.fetch_piece(piece)))
            .buffered(self.options.parallel.max(1));
        let mut parts = Vec::with_capacity(ranges.len());
        for range in ranges {
            let size = usize::try_from(range.end.saturating_sub(range.start));
            let size = size.map_err(|_| {
                Error::file(
                    &self.name,
                    format!(
                        "bytes {}..{} were requested, more than the memory of this system can address; read fewer rows at a time",
                        range.start, range.end
                    ),
                )
            })?;
            let Some((_, first)) = answers.try_next().await? else { break };
            if first.len() == size {
                parts.push((range.start, first));
                continue;
            }
            let mut whole = Vec::with_capacity(size);
            whole.extend_from_slice(&first);
            while whole.len() < size
                && let Some((_, next)) = answers.try_next().await?
            {
                whole.extend_from_slice(&next);
            }
            parts.push((range.start, whole.into()));
        }
        Ok(parts)
    }

    async fn fetch_piece(&self, range: Range<u64>) -> Result<FetchedPart> {
        let options = GetOptions {
            range: Some(GetRange::Bounded(range.clone())),
            if_match: self.e_tag.clone(),
            ..GetOptions::default()
        };
        let answer = self
            .store
            .get_opts(&self.location, options)
            .await
            .map_err(|e| convert_store_error(&self.name, e))?;
        Ok((range.start, self.check_object_bytes(range, answer).await?))
    }

    /// Returns the bytes of the response `answer`. Returns an error if they are not the bytes
    /// `range`, or if the object has another size than when it was opened.
    async fn check_object_bytes(&self, range: Range<u64>, answer: GetResult) -> Result<Bytes> {
        if answer.meta.size != self.len {
            return Err(Error::file(
                &self.name,
                format!(
                    "the object had {} bytes when it was opened and has {} now, so it was replaced; open it again",
                    self.len, answer.meta.size
                ),
            ));
        }
        let given = answer.range.clone();
        let bytes = answer.bytes().await.map_err(|e| convert_store_error(&self.name, e))?;
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if given != range || size != range.end.saturating_sub(range.start) {
            return Err(Error::file(
                &self.name,
                format!(
                    "bytes {}..{} were requested, but the store returned {size} byte(s) of the range {}..{}; read the object again",
                    range.start, range.end, given.start, given.end
                ),
            ));
        }
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(size, Ordering::Relaxed);
        Ok(bytes)
    }
}

/// Returns the first request for a file, for its first [`ObjectOptions::head`] bytes.
pub fn make_first_request(options: &ObjectOptions) -> GetOptions {
    GetOptions {
        range: Some(GetRange::Bounded(0..options.head.max(PREFIX_BYTES))),
        ..GetOptions::default()
    }
}

/// Converts an error of a store to an error that names the object. If the object is missing or was
/// replaced, the message also names a remedy.
pub fn convert_store_error(name: &Path, error: object_store::Error) -> Error {
    match error {
        object_store::Error::NotFound { .. } => Error::io(
            name,
            std::io::Error::new(NotFound, "the object does not exist in the store; check its URL"),
        ),
        object_store::Error::Precondition { .. } => Error::file(
            name,
            "the object was replaced after it was opened; open it again (in SQL, create its table again)",
        ),
        source => Error::Store { path: name.to_path_buf(), source },
    }
}

/// Sorts ranges, drops empty ones, and merges those at most `gap` bytes apart.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::internal::safetensors::coalesce_ranges;
/// assert_eq!(coalesce_ranges(vec![30..40, 0..10, 12..20], 2), [0..20, 30..40]);
/// ```
pub fn coalesce_ranges(mut ranges: Vec<Range<u64>>, gap: u64) -> Vec<Range<u64>> {
    ranges.retain(|r| r.start < r.end);
    ranges.sort_by_key(|r| r.start);
    let mut out: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match out.last_mut() {
            Some(last) if range.start <= last.end.saturating_add(gap) => {
                last.end = last.end.max(range.end);
            }
            _ => out.push(range),
        }
    }
    out
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init)]
mod tests {
    use super::*;

    #[test]
    fn ranges_close_to_each_other_become_one() {
        let ranges = vec![30..40, 0..10, 12..20, 5..6, 25..25];
        assert_eq!(coalesce_ranges(ranges.clone(), 0), [0..10, 12..20, 30..40]);
        assert_eq!(coalesce_ranges(ranges.clone(), 2), [0..20, 30..40]);
        assert_eq!(coalesce_ranges(ranges, 10), [0..40]);
        assert_eq!(coalesce_ranges(vec![], 10), Vec::<Range<u64>>::new());
    }
}
