/// Options of [`IpcTableReader`](super::IpcTableReader).
#[derive(Clone, Debug)]
pub struct IpcReadOptions {
    /// Names of the columns to read, in any order; `None` for all. Columns are returned in file
    /// order.
    pub columns: Option<Vec<String>>,
    /// Whether to map a file and use its buffers in place, instead of reading it. The file must not
    /// change in place: a changed value is undefined behavior, and truncation kills the process. A
    /// replacement by rename, as writers of this crate do, is safe. Streams are never mapped.
    pub mmap: bool,
}

impl Default for IpcReadOptions {
    fn default() -> Self {
        Self { columns: None, mmap: true }
    }
}
