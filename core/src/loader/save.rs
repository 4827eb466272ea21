//! Writes batches to files: to a folder, or as one stream.

use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::batch::Batch;
use crate::access;
use crate::error::{Error, Result};
use crate::io::atomic::{AtomicFolder, ExistingTarget, list_replaced};
use crate::io::safetensors::dense;

const INDEX: &str = "batches.json";

/// A folder of batches, each in one safetensors file.
///
/// The files are named `batch-000000.safetensors`, `batch-000001.safetensors`, .. in the order of
/// writing, and the numbers continue across epochs.
///
/// The file `batches.json` lists the batches: its key `batches` has the `file`, the `epoch` and the
/// number of `items` of each batch, and its other keys come from the argument of
/// [`finish`](Self::finish). The metadata of each file also has the epoch and the index of the
/// batch. The folder appears only when it is complete.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use serrate::arrow::array::UInt16Array;
/// use serrate::io::ExistingTarget;
/// use serrate::loader::{BatchFolder, Loader, LoaderOptions};
/// use serrate::table::RaggedTable;
/// let table = RaggedTable::builder()
///     .lengths([3, 1, 2])?
///     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9, 4, 5, 6])))
///     .build()?;
/// let dir = tempfile::tempdir()?;
/// let out = dir.path().join("batches");
/// let mut folder = BatchFolder::create(&out, ExistingTarget::Refuse)?;
/// for batch in Loader::try_new([table], LoaderOptions::new(2))?.epoch(0)? {
///     folder.write(0, &batch?)?;
/// }
/// folder.finish(Default::default())?;
/// assert!(out.join("batch-000001.safetensors").exists());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct BatchFolder {
    folder: AtomicFolder,
    batches: Vec<Value>,
}

impl BatchFolder {
    /// Starts a folder.
    ///
    /// [`finish`](Self::finish) replaces an existing folder `target` if `existing` is
    /// [`ExistingTarget::Replace`].
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::ExistingTarget;
    /// use serrate::loader::BatchFolder;
    /// let dir = tempfile::tempdir()?;
    /// std::fs::write(dir.path().join("notes.txt"), "")?;
    /// let refused = BatchFolder::create(dir.path(), ExistingTarget::Refuse);
    /// assert!(refused.is_err_and(|e| e.is_exists()));
    /// let refused = BatchFolder::create(dir.path(), ExistingTarget::Replace);
    /// assert!(refused.is_err()); // `notes.txt` is not a file of batches
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If `target` has files and `existing` is [`ExistingTarget::Refuse`], or if `target` has a
    /// file that is not a file of batches, or if the folder cannot be created.
    pub fn create(target: impl AsRef<Path>, existing: ExistingTarget) -> Result<Self> {
        let target = target.as_ref();
        check_target(target, existing == ExistingTarget::Replace)?;
        Ok(Self { folder: AtomicFolder::create(target)?, batches: Vec::new() })
    }

    /// Writes a batch of an epoch.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// # use serrate::table::RaggedTable;
    /// # use serrate::loader::{Loader, LoaderOptions};
    /// # let x = Arc::new(Int32Array::from_iter_values(1..7));
    /// # let table = RaggedTable::builder().lengths([2, 1, 3])?.column("x", 1, x).build()?;
    /// # let batch = Loader::try_new([table], LoaderOptions::new(2))?.batch_of(0, &[0])?;
    /// use serrate::io::ExistingTarget;
    /// use serrate::loader::BatchFolder;
    /// let dir = tempfile::tempdir()?;
    /// let out = dir.path().join("batches");
    /// let mut folder = BatchFolder::create(&out, ExistingTarget::Refuse)?;
    /// folder.write(0, &batch)?;
    /// assert_eq!(folder.finish(Default::default())?, 1);
    /// assert!(out.join("batch-000000.safetensors").exists());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&mut self, epoch: u64, batch: &Batch) -> Result<()> {
        let name = format!("batch-{:06}.safetensors", self.batches.len());
        let path = self.folder.path().join(&name);
        let encoded = encode_batch(&path, epoch, batch, &BTreeMap::new())?;
        let write = || -> std::io::Result<()> {
            let mut out = BufWriter::with_capacity(1 << 20, access::create_new(&path)?);
            encoded.write_to(&mut out)?;
            out.flush()
        };
        write().map_err(|e| Error::io(&path, e))?;
        self.batches.push(json!({ "file": name, "epoch": epoch, "items": batch.len() }));
        Ok(())
    }

    /// Writes `batches.json` with the list of batches and the members of `about`, moves the folder
    /// to its final name, and returns the number of batches.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serde_json::{Map, Value};
    /// use serrate::io::ExistingTarget;
    /// use serrate::loader::BatchFolder;
    /// let dir = tempfile::tempdir()?;
    /// let out = dir.path().join("batches");
    /// let about = Map::from_iter([("task".to_owned(), Value::from("readmission"))]);
    /// assert_eq!(BatchFolder::create(&out, ExistingTarget::Refuse)?.finish(about)?, 0); // no batches
    /// assert!(std::fs::read_to_string(out.join("batches.json"))?.contains("readmission"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the file cannot be written or the folder cannot be renamed.
    pub fn finish(self, mut about: Map<String, Value>) -> Result<usize> {
        let batches = self.batches.len();
        about.insert("batches".into(), Value::Array(self.batches));
        let path = self.folder.path().join(INDEX);
        let text = format!("{:#}\n", Value::Object(about));
        access::write_new(&path, text).map_err(|e| Error::io(&path, e))?;
        self.folder.commit()?;
        Ok(batches)
    }
}

/// A stream of batches.
///
/// Each batch is a size (8 bytes, little-endian), followed by a safetensors file of this size. A
/// size of 0 ends the stream; a stream that does not end with this size is incomplete.
#[derive(Debug)]
pub struct BatchStream<W> {
    out: W,
    name: PathBuf,
    metadata: BTreeMap<String, String>,
}

impl<W: Write> BatchStream<W> {
    /// Starts a stream to `out`, which should be buffered; error messages call the stream `name`.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::loader::BatchStream;
    /// let out = BatchStream::new(Vec::<u8>::new(), "stdout").finish()?;
    /// assert_eq!(out.len(), 8); // the size that ends the stream
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn new(out: W, name: impl Into<PathBuf>) -> Self {
        Self { out, name: name.into(), metadata: BTreeMap::new() }
    }

    /// Adds an entry to the metadata of every batch, such as the names of categories.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::UInt16Array;
    /// # use serrate::table::RaggedTable;
    /// use serrate::loader::{BatchStream, Loader, LoaderOptions};
    /// let table = RaggedTable::builder()
    ///     .lengths([2, 1])?
    ///     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9])))
    ///     .build()?;
    /// let mut out = Vec::new();
    /// let mut stream = BatchStream::new(&mut out, "stdout").metadata("task", "readmission");
    /// for batch in Loader::try_new([table], LoaderOptions::new(2))?.epoch(0)? {
    ///     stream.write(0, &batch?)?;
    /// }
    /// stream.finish()?;
    /// let text = String::from_utf8_lossy(&out);
    /// assert!(text.contains("readmission"));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn metadata(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.insert(name.into(), value.into());
        self
    }

    /// Writes a batch of an epoch.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// # use serrate::table::RaggedTable;
    /// # use serrate::loader::{Loader, LoaderOptions};
    /// # let x = Arc::new(Int32Array::from_iter_values(1..7));
    /// # let table = RaggedTable::builder().lengths([2, 1, 3])?.column("x", 1, x).build()?;
    /// # let batch = Loader::try_new([table], LoaderOptions::new(2))?.batch_of(0, &[0])?;
    /// use serrate::loader::BatchStream;
    /// let mut stream = BatchStream::new(Vec::<u8>::new(), "stdout");
    /// stream.write(0, &batch)?;
    /// let out = stream.finish()?;
    /// let size = u64::from_le_bytes(*out.first_chunk().unwrap());
    /// assert_eq!(out.len() as u64, 8 + size + 8);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the stream cannot be written.
    pub fn write(&mut self, epoch: u64, batch: &Batch) -> Result<()> {
        let encoded = encode_batch(&self.name, epoch, batch, &self.metadata)?;
        self.out
            .write_all(&encoded.nbytes().to_le_bytes())
            .and_then(|()| encoded.write_to(&mut self.out))
            .map_err(|e| Error::io(&self.name, e))
    }

    /// Ends the stream and returns the writer.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::loader::BatchStream;
    /// assert_eq!(BatchStream::new(Vec::<u8>::new(), "stdout").finish()?, [0; 8]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the stream cannot be written.
    pub fn finish(mut self) -> Result<W> {
        self.out
            .write_all(&0u64.to_le_bytes())
            .and_then(|()| self.out.flush())
            .map_err(|e| Error::io(&self.name, e))?;
        Ok(self.out)
    }
}

fn encode_batch<'a>(
    path: &Path,
    epoch: u64,
    batch: &'a Batch,
    more: &BTreeMap<String, String>,
) -> Result<crate::io::safetensors::EncodedTensors<'a>> {
    let mut metadata = more.clone();
    metadata.insert("epoch".to_owned(), epoch.to_string());
    metadata.insert("batch".to_owned(), batch.number().to_string());
    let tensors = batch.tensors().iter().map(|(name, tensor)| (name.as_ref(), tensor));
    dense::encode(path, tensors, &metadata)
}

/// Returns an error if [`BatchFolder::create`] would refuse `target`. Callers check `target` before
/// they read input, so that an error comes early.
///
/// # Errors
/// Same as [`BatchFolder::create`].
pub fn check_target(target: &Path, overwrite: bool) -> Result<()> {
    let names = list_replaced(target, overwrite)?;
    let is_ours = |name: &str| {
        name == INDEX || (name.starts_with("batch-") && name.ends_with(".safetensors"))
    };
    match names.iter().find(|name| !is_ours(&name.to_string_lossy())) {
        None => Ok(()),
        Some(other) => Err(Error::file(
            target,
            format!(
                "the folder contains {:?}, which is not a file of batches, so the folder is not overwritten; remove the file, or write to another folder",
                other.to_string_lossy()
            ),
        )),
    }
}
