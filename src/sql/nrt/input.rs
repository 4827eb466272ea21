//! A file to scan: mapped, read, or in an object store.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::error::DataFusionError;
use object_store::{GetOptions, GetResultPayload, ObjectMeta, ObjectStore};

use crate::io::nrt::{NrtColumn, NrtFile, NrtObject, ObjectOptions, ReadOptions};
use crate::io::safetensors::{explain, first_request};

/// An open file.
#[derive(Debug)]
pub(super) enum Input {
    /// On this machine.
    File {
        file: NrtFile,
        /// Whether reading it waits for the disk.
        waits: bool,
    },
    /// Elsewhere.
    Object(NrtObject),
}

impl Input {
    /// Opens a file of a store with one request: a local one by its handle, of another the header.
    /// `name` names what is not local in errors.
    pub(super) async fn open(
        store: &Arc<dyn ObjectStore>,
        meta: &ObjectMeta,
        name: Option<String>,
        mmap: bool,
    ) -> Result<Self> {
        let name = PathBuf::from(name.unwrap_or_else(|| meta.location.to_string()));
        let options = ObjectOptions::default();
        // No range of nothing can be asked for.
        let request = if meta.size == 0 { GetOptions::default() } else { first_request(&options) };
        let first = store.get_opts(&meta.location, request).await.map_err(|e| explain(&name, e))?;
        if let GetResultPayload::File(..) = first.payload {
            let GetResultPayload::File(file, path) = first.payload else {
                return datafusion::common::internal_err!("a file is a file");
            };
            let options = ReadOptions { mmap, ..ReadOptions::default() };
            let open = move || NrtFile::from_file(path, file, &options);
            let file = tokio::task::spawn_blocking(open)
                .await
                .map_err(|e| DataFusionError::ExecutionJoin(Box::new(e)))??;
            return Ok(Self::File { file, waits: !mmap });
        }
        let (store, location) = (Arc::clone(store), meta.location.clone());
        let object =
            NrtObject::from_first(store, location, name, first, meta.size, &options).await?;
        Ok(Self::Object(object))
    }

    pub(super) fn path(&self) -> &std::path::Path {
        match self {
            Self::File { file, .. } => file.path(),
            Self::Object(object) => object.path(),
        }
    }

    pub(super) fn num_rows(&self) -> usize {
        match self {
            Self::File { file, .. } => file.num_rows(),
            Self::Object(object) => object.num_rows(),
        }
    }

    pub(super) fn columns(&self) -> &[NrtColumn] {
        match self {
            Self::File { file, .. } => file.columns(),
            Self::Object(object) => object.columns(),
        }
    }

    pub(super) fn column(&self, name: &str) -> Option<&NrtColumn> {
        self.columns().iter().find(|c| c.name() == name)
    }

    pub(super) fn schema(&self) -> SchemaRef {
        match self {
            Self::File { file, .. } => file.schema(),
            Self::Object(object) => object.schema(),
        }
    }

    /// Number of elements of an axis.
    pub(super) fn axis_len(&self, axis: usize) -> crate::Result<usize> {
        match self {
            Self::File { file, .. } => file.axis_len(axis),
            Self::Object(object) => object.axis_len(axis),
        }
    }

    /// Whether parts are fetched before they are read.
    pub(super) fn is_remote(&self) -> bool {
        matches!(self, Self::Object(_))
    }

    /// Whether reading waits for the disk, so that it is no work for a thread of the runtime.
    pub(super) fn waits(&self) -> bool {
        matches!(self, Self::File { waits: true, .. })
    }

    /// Bytes and requests so far. For a mapped file the bytes are those looked at, and there are no
    /// requests for a local one.
    pub(super) fn read_so_far(&self) -> (u64, u64) {
        match self {
            Self::File { file, .. } => (file.tensors().source().bytes_read(), 0),
            Self::Object(object) => (object.bytes_read(), object.requests()),
        }
    }

    /// A file in which these rows of these columns, the deepest of which is on axis `depth`, can be
    /// read.
    pub(super) async fn fetch(
        &self,
        runs: &[Range<usize>],
        columns: &[String],
        depth: usize,
    ) -> Result<NrtFile> {
        let object = match self {
            Self::File { file, .. } => return Ok(file.clone()),
            Self::Object(object) => object,
        };
        let file = object.fetch_bounds(runs, depth).await?;
        let columns: Vec<&NrtColumn> = columns.iter().filter_map(|n| self.column(n)).collect();
        Ok(object.fetch_values(&file, runs, &columns, depth).await?)
    }
}
