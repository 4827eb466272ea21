//! Where the bytes of a file come from: a memory map, positioned reads, memory, or parts of a file
//! that were fetched before.

#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::buffer::{Buffer, MutableBuffer};
use bytes::Bytes;

use crate::error::{Error, Result};

/// A file to read parts of.
///
/// A memory map gives parts without a copy, and only the pages that are looked at are read. If
/// somebody truncates the file meanwhile, looking at a page that is gone kills the process
/// (`SIGBUS`); where that may happen, use positioned reads, which return an error instead.
#[derive(Debug)]
pub struct Source {
    path: PathBuf,
    bytes: Kind,
    len: u64,
    asked: AtomicU64,
}

#[derive(Debug)]
enum Kind {
    /// A map or memory: parts are views.
    View(Bytes),
    /// Positioned reads: parts are copies.
    File(File),
    /// What was fetched of a file that lies elsewhere: views of it, and nothing else can be read.
    Parts {
        /// Where each part starts, and its bytes; in the order of the starts.
        parts: Vec<(u64, Bytes)>,
        /// The first range that was asked for and is not there.
        missing: OnceLock<Range<u64>>,
    },
}

impl Source {
    /// Opens a file, mapped when `mmap` is set.
    pub fn open(path: impl AsRef<Path>, mmap: bool) -> Result<Self> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|e| Error::io(path, e))?;
        Self::from_file(path, file, mmap)
    }

    /// From a file that is open already; `path` names it in errors.
    pub fn from_file(path: impl AsRef<Path>, file: File, mmap: bool) -> Result<Self> {
        let path = path.as_ref().to_path_buf();
        let metadata = file.metadata().map_err(|e| Error::io(&path, e))?;
        if !metadata.is_file() {
            return Err(Error::file(path, "not a regular file"));
        }
        let len = metadata.len();
        let bytes = if mmap && len > 0 {
            // SAFETY: the map is read-only. That nobody writes into or shortens the file while it is mapped cannot
            // be checked; the type's documentation says what happens then and how to avoid it.
            let map = unsafe { memmap2::Mmap::map(&file) }.map_err(|e| Error::io(&path, e))?;
            Kind::View(Bytes::from_owner(map))
        } else {
            Kind::File(file)
        };
        // The file may have grown or shrunk between the two questions.
        let len =
            if let Kind::View(b) = &bytes { u64::try_from(b.len()).unwrap_or(0) } else { len };
        Ok(Self { path, bytes, len, asked: AtomicU64::new(0) })
    }

    /// From memory; `path` names it in errors.
    pub fn from_bytes(path: impl AsRef<Path>, bytes: Bytes) -> Self {
        Self {
            path: path.as_ref().to_path_buf(),
            len: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
            bytes: Kind::View(bytes),
            asked: AtomicU64::new(0),
        }
    }

    /// From parts of a file of `len` bytes, each with where it starts. What lies in none of them
    /// cannot be read: that is an error, and [`missing`](Self::missing) says what it was.
    #[cfg_attr(not(feature = "object_store"), expect(dead_code, reason = "stores fetch parts"))]
    pub(crate) fn from_parts(path: PathBuf, len: u64, mut parts: Vec<(u64, Bytes)>) -> Self {
        parts.sort_by_key(|(start, _)| *start);
        let bytes = Kind::Parts { parts, missing: OnceLock::new() };
        Self { path, len, bytes, asked: AtomicU64::new(0) }
    }

    /// The parts that there are; none unless it was made of parts.
    #[cfg_attr(not(feature = "object_store"), expect(dead_code, reason = "stores fetch parts"))]
    pub(crate) fn parts(&self) -> &[(u64, Bytes)] {
        match &self.bytes {
            Kind::Parts { parts, .. } => parts,
            Kind::View(_) | Kind::File(_) => &[],
        }
    }

    /// The first range that was asked for and lies in no part.
    #[cfg_attr(not(feature = "object_store"), expect(dead_code, reason = "stores fetch parts"))]
    pub(crate) fn missing(&self) -> Option<Range<u64>> {
        match &self.bytes {
            Kind::Parts { missing, .. } => missing.get().cloned(),
            Kind::View(_) | Kind::File(_) => None,
        }
    }

    /// Name of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Length in bytes when it was opened.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether parts are views of one mapping (or of memory) and not copies.
    pub fn is_view(&self) -> bool {
        !matches!(self.bytes, Kind::File(_))
    }

    /// Bytes asked for so far, all reads together. With positioned reads these are the bytes read.
    pub fn bytes_read(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }

    /// A part of the file. The buffer covers no more than the part, so memory accounting charges
    /// the part alone; it is aligned to 64 bytes when it was read, as in the file when mapped.
    ///
    /// # Errors
    /// When the range is not within the file, or the file has become shorter since.
    pub fn read(&self, range: Range<u64>) -> Result<Buffer> {
        let outside = || {
            Error::file(
                &self.path,
                format!(
                    "bytes {}..{} are not within its {} bytes",
                    range.start, range.end, self.len
                ),
            )
        };
        if range.start > range.end || range.end > self.len {
            return Err(outside());
        }
        let (Ok(start), Ok(end)) = (usize::try_from(range.start), usize::try_from(range.end))
        else {
            return Err(outside());
        };
        let size = end.saturating_sub(start);
        self.asked.fetch_add(u64::try_from(size).unwrap_or(0), Ordering::Relaxed);
        match &self.bytes {
            Kind::View(bytes) => Ok(Buffer::from(bytes.slice(start..end))),
            Kind::File(file) => {
                let mut buffer = MutableBuffer::from_len_zeroed(size);
                read_exact_at(file, buffer.as_slice_mut(), range.start).map_err(|e| {
                    if e.kind() == std::io::ErrorKind::UnexpectedEof {
                        Error::file(
                            &self.path,
                            format!(
                                "it ended while bytes {}..{} were read; it had {} bytes when it was opened",
                                range.start, range.end, self.len
                            ),
                        )
                    } else {
                        Error::io(&self.path, e)
                    }
                })?;
                Ok(buffer.into())
            }
            Kind::Parts { parts, missing } => part(parts, &range).ok_or_else(|| {
                let _ = missing.set(range.clone());
                Error::file(
                    &self.path,
                    format!("bytes {}..{} have not been fetched", range.start, range.end),
                )
            }),
        }
    }
}

/// Whether one of `parts`, which are in the order of their starts, is seen to hold all of `range`: the
/// first, with which a file was opened, or one of the last that start before it.
#[cfg(feature = "object_store")]
pub(crate) fn covered(parts: &[(u64, Bytes)], range: &Range<u64>) -> bool {
    let before = parts.partition_point(|(start, _)| *start <= range.start);
    let near = parts.iter().take(before).rev().take(4);
    near.chain(parts.first()).any(|(start, bytes)| {
        let end = u64::try_from(bytes.len()).ok().and_then(|n| start.checked_add(n));
        *start <= range.start && end.is_some_and(|end| range.end <= end)
    })
}

/// The bytes `range` of the part that holds them all.
fn part(parts: &[(u64, Bytes)], range: &Range<u64>) -> Option<Buffer> {
    if range.is_empty() {
        return Some(Buffer::default());
    }
    let candidates = parts.get(..parts.partition_point(|(start, _)| *start <= range.start))?;
    // Mostly the last one that starts before; parts may overlap.
    candidates.iter().rev().find_map(|(start, bytes)| {
        let from = usize::try_from(range.start.checked_sub(*start)?).ok()?;
        let to = usize::try_from(range.end.checked_sub(*start)?).ok()?;
        (to <= bytes.len()).then(|| Buffer::from(bytes.slice(from..to)))
    })
}

/// Fills a buffer from a place of a file, whose position stays as it is on Unix.
#[cfg(unix)]
pub(crate) fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset)
}

/// Fills a buffer from a place of a file.
#[cfg(windows)]
pub(crate) fn read_exact_at(
    file: &File,
    mut buffer: &mut [u8],
    mut offset: u64,
) -> std::io::Result<()> {
    while !buffer.is_empty() {
        let n = std::os::windows::fs::FileExt::seek_read(file, buffer, offset)?;
        if n == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        buffer = buffer.get_mut(n..).unwrap_or_default();
        offset = offset.saturating_add(u64::try_from(n).unwrap_or(0));
    }
    Ok(())
}
