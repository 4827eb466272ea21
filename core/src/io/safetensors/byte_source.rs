//! Reads ranges of bytes of a file that is mapped, read by position, in memory or fetched.

#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::buffer::{Buffer, MutableBuffer};
use bytes::Bytes;

use crate::access;
use crate::error::{Error, Result};
use crate::io::memory_map::map_file;

/// How the bytes of a local file are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileAccess {
    /// By a memory map, which returns parts without a copy and reads only touched pages. If the
    /// file is truncated, access to the map kills the process (`SIGBUS`).
    Map,
    /// By positioned reads, which copy. If the file is truncated, they return an error.
    Read,
}

impl FileAccess {
    pub(crate) const fn from_mmap(mmap: bool) -> Self {
        if mmap { Self::Map } else { Self::Read }
    }
}

/// A file that is read in parts.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::io::safetensors::ByteSource;
/// let source = ByteSource::from_bytes("memory", vec![1, 2, 3].into());
/// assert_eq!(source.read(1..3)?.as_slice(), [2, 3]);
/// assert_eq!((source.len(), source.is_empty(), source.bytes_read()), (3, false, 2));
/// assert_eq!(source.path(), std::path::Path::new("memory"));
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Debug)]
pub struct ByteSource {
    path: PathBuf,
    bytes: ByteBacking,
    len: u64,
    asked: AtomicU64,
}

#[derive(Debug)]
enum ByteBacking {
    /// A memory map or bytes in memory; reads return views.
    View(Bytes),
    /// A file with positioned reads, which return copies.
    File(File),
    /// Fetched parts of a remote file. Reads return views, and fail if no part contains the range.
    Parts {
        /// For each part, its offset in the file and its bytes; sorted by offset.
        parts: Vec<(u64, Bytes)>,
        missing: OnceLock<Range<u64>>,
    },
}

impl ByteSource {
    /// Opens a file.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::safetensors::{ByteSource, FileAccess};
    /// let dir = tempfile::tempdir()?;
    /// let path = dir.path().join("x");
    /// std::fs::write(&path, [1, 2, 3])?;
    /// let source = ByteSource::open(&path, FileAccess::Map)?;
    /// assert_eq!((source.len(), source.read(1..3)?.as_slice()), (3, &[2, 3][..]));
    /// let absent = ByteSource::open(dir.path().join("y"), FileAccess::Map);
    /// assert!(absent.is_err_and(|e| e.is_not_found()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the file does not exist, may not be read, is not a regular file, or cannot be mapped.
    pub fn open(path: impl AsRef<Path>, access: FileAccess) -> Result<Self> {
        let path = path.as_ref();
        let file = access::open(path).map_err(|e| Error::io(path, e))?;
        Self::from_file(path, file, access)
    }

    /// Creates a source from an open file; `path` is used in errors.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::fs::File;
    /// use serrate::io::safetensors::{ByteSource, FileAccess};
    /// let dir = tempfile::tempdir()?;
    /// let path = dir.path().join("x");
    /// std::fs::write(&path, [1, 2, 3])?;
    /// let source = ByteSource::from_file(&path, File::open(&path)?, FileAccess::Read)?;
    /// assert_eq!(source.read(0..2)?.as_slice(), [1, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the handle is not that of a regular file, or the system cannot map it.
    pub fn from_file(path: impl AsRef<Path>, file: File, access: FileAccess) -> Result<Self> {
        let path = path.as_ref().to_path_buf();
        let metadata = file.metadata().map_err(|e| Error::io(&path, e))?;
        if !metadata.is_file() {
            return Err(Error::file(
                path,
                "the path is that of a folder, pipe or device; give the path of a regular file",
            ));
        }
        let len = metadata.len();
        let bytes = if access == FileAccess::Map && len > 0 {
            ByteBacking::View(map_file(&file).map_err(|e| Error::io(&path, e))?)
        } else {
            ByteBacking::File(file)
        };
        // The file may have grown or shrunk since its metadata was read, so use the length of the
        // map.
        let len = if let ByteBacking::View(b) = &bytes {
            u64::try_from(b.len()).unwrap_or(0)
        } else {
            len
        };
        Ok(Self { path, bytes, len, asked: AtomicU64::new(0) })
    }

    /// Creates a source from memory; `path` is used in errors.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::safetensors::ByteSource;
    /// let source = ByteSource::from_bytes("memory", vec![1, 2, 3].into());
    /// assert_eq!((source.len(), source.path().to_str()), (3, Some("memory")));
    /// ```
    pub fn from_bytes(path: impl AsRef<Path>, bytes: Bytes) -> Self {
        Self {
            path: path.as_ref().to_path_buf(),
            len: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
            bytes: ByteBacking::View(bytes),
            asked: AtomicU64::new(0),
        }
    }

    /// Creates a source from `parts` (offset and bytes) of a file of `len` bytes. A read that no
    /// part contains is an error; [`missing`](Self::missing) then returns its range.
    #[cfg_attr(not(feature = "object_store"), expect(dead_code, reason = "stores fetch parts"))]
    pub(crate) fn from_parts(path: PathBuf, len: u64, mut parts: Vec<(u64, Bytes)>) -> Self {
        parts.sort_by_key(|(start, _)| *start);
        let bytes = ByteBacking::Parts { parts, missing: OnceLock::new() };
        Self { path, len, bytes, asked: AtomicU64::new(0) }
    }

    #[cfg_attr(not(feature = "object_store"), expect(dead_code, reason = "stores fetch parts"))]
    pub(crate) fn parts(&self) -> &[(u64, Bytes)] {
        match &self.bytes {
            ByteBacking::Parts { parts, .. } => parts,
            ByteBacking::View(_) | ByteBacking::File(_) => &[],
        }
    }

    /// Returns the first range that a read requested and that no part contains; `None` if there is
    /// none.
    #[cfg_attr(not(feature = "object_store"), expect(dead_code, reason = "stores fetch parts"))]
    pub(crate) fn missing(&self) -> Option<Range<u64>> {
        match &self.bytes {
            ByteBacking::Parts { missing, .. } => missing.get().cloned(),
            ByteBacking::View(_) | ByteBacking::File(_) => None,
        }
    }

    /// Returns the name of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the length in bytes that the file had when it was opened.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether the file is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of bytes that all reads have requested so far.
    pub fn bytes_read(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }

    /// Reads the bytes `range` of the file.
    ///
    /// The buffer covers exactly this range, so memory accounting counts no other bytes. Copied
    /// bytes are aligned to 64 bytes; mapped bytes are aligned as in the file.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::safetensors::ByteSource;
    /// let source = ByteSource::from_bytes("memory", vec![1, 2, 3].into());
    /// assert_eq!(source.read(1..3)?.as_slice(), [2, 3]);
    /// assert!(source.read(1..4).is_err());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the range is not within the file, or the file has been truncated.
    pub fn read(&self, range: Range<u64>) -> Result<Buffer> {
        let outside = || {
            Error::file(
                &self.path,
                format!(
                    "bytes {}..{} are outside the file of {} bytes, so the file is damaged; create it again",
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
            ByteBacking::View(bytes) => Ok(Buffer::from(bytes.slice(start..end))),
            ByteBacking::File(file) => {
                let mut buffer = MutableBuffer::from_len_zeroed(size);
                read_exact_at(file, buffer.as_slice_mut(), range.start).map_err(|e| {
                    if e.kind() == std::io::ErrorKind::UnexpectedEof {
                        Error::file(
                            &self.path,
                            format!(
                                "the file ended while bytes {}..{} were read, but had {} bytes when it was opened, so it was truncated; create it again",
                                range.start, range.end, self.len
                            ),
                        )
                    } else {
                        Error::io(&self.path, e)
                    }
                })?;
                Ok(buffer.into())
            }
            ByteBacking::Parts { parts, missing } => read_part(parts, &range).ok_or_else(|| {
                let _ = missing.set(range.clone());
                Error::file(
                    &self.path,
                    format!(
                        "internal error: bytes {}..{} of the remote file were not fetched before they were read; please report it",
                        range.start, range.end
                    ),
                )
            }),
        }
    }
}

/// Returns whether a part contains `range`. Checks only the first part, which was fetched on
/// opening, and the last four parts that start before the range. If another part contains the
/// range, returns false, and the caller fetches the range again.
#[cfg(feature = "object_store")]
pub(crate) fn is_covered(parts: &[(u64, Bytes)], range: &Range<u64>) -> bool {
    let before = parts.partition_point(|(start, _)| *start <= range.start);
    let near = parts.iter().take(before).rev().take(4);
    near.chain(parts.first()).any(|(start, bytes)| {
        let end = u64::try_from(bytes.len()).ok().and_then(|n| start.checked_add(n));
        *start <= range.start && end.is_some_and(|end| range.end <= end)
    })
}

/// Returns the bytes of `range` from a part that contains the whole range; `None` if no part does.
fn read_part(parts: &[(u64, Bytes)], range: &Range<u64>) -> Option<Buffer> {
    if range.is_empty() {
        return Some(Buffer::default());
    }
    let candidates = parts.get(..parts.partition_point(|(start, _)| *start <= range.start))?;
    // Parts may overlap. Search backwards: usually the last part that starts before the range
    // contains it.
    candidates.iter().rev().find_map(|(start, bytes)| {
        let from = usize::try_from(range.start.checked_sub(*start)?).ok()?;
        let to = usize::try_from(range.end.checked_sub(*start)?).ok()?;
        (to <= bytes.len()).then(|| Buffer::from(bytes.slice(from..to)))
    })
}

/// Fills `buffer` with the bytes of a file from `offset` on. On Unix, the cursor of the file does
/// not move; on Windows, it does.
#[cfg(unix)]
pub(crate) fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset)
}

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
