//! Where the bytes of a file come from: a memory map, positioned reads, or memory.

#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
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
            // SAFETY: the map is read-only. That nobody shortens the file while it is mapped cannot
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
        matches!(self.bytes, Kind::View(_))
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
        }
    }
}

#[cfg(unix)]
fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut buffer: &mut [u8], mut offset: u64) -> std::io::Result<()> {
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
