//! Reads the names, types and shapes of the tensors of a safetensors file, or of all files of a
//! folder of batches, for a report.

use std::path::{Path, PathBuf};

use crate::access;
use crate::cli::command_failure::Outcome;
use crate::cli::files::FileFormat;
use crate::cli::interrupt;
use crate::error::Error;
use crate::io::safetensors::{FileAccess, SafetensorsFile};
use serrate_core::internal::make_natural_key;

/// Facts about the tensors that have the same name in all files.
pub(super) struct TensorFacts {
    pub(super) name: String,
    pub(super) types: Vec<String>,
    pub(super) files: usize,
    /// Smallest and largest size of each axis; `None` if the number of axes differs.
    pub(super) sizes: Option<Vec<(usize, usize)>>,
    pub(super) bytes: u128,
}

const INDEX: &str = "batches.json";

/// Headers of a safetensors file, or of the files of a folder of batches.
pub(super) struct TensorFiles {
    pub(super) files: Vec<PathBuf>,
    pub(super) is_folder: bool,
    pub(super) bytes: u64,
    pub(super) tensors: Vec<TensorFacts>,
}

/// Reads the headers of a safetensors file or a folder of batches. Returns `None` for any other
/// path.
pub(super) fn read_tensors(path: &Path) -> Outcome<Option<TensorFiles>> {
    let is_folder = access::is_dir(path);
    let files = match FileFormat::from_path(path) {
        Some(FileFormat::Safetensors) if access::is_file(path) => vec![path.to_path_buf()],
        _ if access::is_file(path.join(INDEX)) => list_batches(path)?,
        _ => return Ok(None),
    };
    let mut bytes = 0u64;
    let mut tensors: Vec<TensorFacts> = Vec::new();
    for file in &files {
        interrupt::check_interrupt()?;
        let length = access::metadata(file).map_err(|e| Error::io(file, e))?.len();
        bytes = bytes.saturating_add(length);
        for entry in SafetensorsFile::open(file, FileAccess::Map)?.tensors() {
            let known = tensors.iter().position(|t| t.name == entry.name());
            let known = known.unwrap_or_else(|| {
                tensors.push(TensorFacts {
                    name: entry.name().to_owned(),
                    types: Vec::new(),
                    files: 0,
                    sizes: Some(entry.shape().iter().map(|n| (*n, *n)).collect()),
                    bytes: 0,
                });
                tensors.len() - 1
            });
            let Some(tensor) = tensors.get_mut(known) else { continue };
            tensor.files += 1;
            tensor.bytes += entry.nbytes() as u128;
            let dtype = format!("{:?}", entry.dtype());
            if !tensor.types.contains(&dtype) {
                tensor.types.push(dtype);
            }
            tensor.sizes = tensor.sizes.take().filter(|s| s.len() == entry.shape().len());
            for ((low, high), n) in tensor.sizes.iter_mut().flatten().zip(entry.shape()) {
                (*low, *high) = ((*low).min(*n), (*high).max(*n));
            }
        }
    }
    Ok(Some(TensorFiles { files, is_folder, bytes, tensors }))
}

fn list_batches(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in access::read_dir(folder).map_err(|e| Error::io(folder, e))? {
        let path = entry.map_err(|e| Error::io(folder, e))?.path();
        if FileFormat::from_path(&path) == Some(FileFormat::Safetensors) && access::is_file(&path) {
            files.push(path);
        }
    }
    files.sort_by_cached_key(|path| make_natural_key(&path.to_string_lossy()));
    Ok(files)
}
