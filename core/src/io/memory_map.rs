use std::fs::File;
use std::io;

use bytes::Bytes;
use memmap2::Mmap;

/// Maps a file into memory. If another process truncates the file, access to a missing page kills
/// this process (`SIGBUS`); if another process writes to the file, values change. The options named
/// `mmap` document this.
pub(super) fn map_file(file: &File) -> io::Result<Bytes> {
    // SAFETY: this process does not write to the map. That no other process changes or truncates
    // the file cannot be checked; the documentation of the options `mmap` states the consequence.
    let map = unsafe { Mmap::map(file) }?;
    Ok(Bytes::from_owner(map))
}
