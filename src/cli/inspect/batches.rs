//! The part of `serrate inspect` for folders of training batches: their number, size and tensors.

use std::io::Write;
use std::path::Path;

use serde_json::{Value, json};

use crate::access;
use crate::cli::command_failure::{Failure, Outcome};
use crate::cli::interrupt;
use crate::cli::output::{TextTable, format_count, format_size, group_digits};
use crate::cli::progress::Progress;
use crate::error::Error;
use crate::io::safetensors::{FileAccess, SafetensorsFile};

const INDEX: &str = "batches.json";

pub(super) struct BatchReport {
    index: Value,
    batches: usize,
    bytes: u64,
    tensors: Vec<TensorRange>,
}

/// Facts about all tensors that have the same name, `name`, in the batches of a folder.
struct TensorRange {
    name: String,
    dtype: String,
    batches: usize,
    /// Least and greatest size of each axis; `None` if the tensors differ in the number of axes.
    shape: Option<Vec<(usize, usize)>>,
    bytes: u64,
}

impl BatchReport {
    /// Reads the index of a folder of batches, and the headers of its batches. Returns `None` if
    /// the folder has no index, so that it is not a folder of batches.
    pub(super) fn read(folder: &Path) -> Outcome<Option<Self>> {
        let path = folder.join(INDEX);
        if !access::is_file(&path) {
            return Ok(None);
        }
        let wrong = |what: String| Failure::from_message(format!("{}: {what}", path.display()));
        let text = access::read_to_string(&path).map_err(|e| Error::io(&path, e))?;
        let mut index: Value = serde_json::from_str(&text).map_err(|e| {
            wrong(format!("the file is not a JSON list of batches; save the batches again: {e}"))
        })?;
        let Some(Value::Array(batches)) = index.as_object_mut().and_then(|o| o.remove("batches"))
        else {
            return Err(wrong(
                "the key \"batches\" with the list of batches is missing; save the batches again"
                    .into(),
            ));
        };
        let progress = Progress::new(batches.len());
        let mut report = Self { index, batches: batches.len(), bytes: 0, tensors: Vec::new() };
        for batch in &batches {
            interrupt::check_interrupt()?;
            let Some(name) = batch.get("file").and_then(Value::as_str) else {
                return Err(wrong(
                    "a batch has no key \"file\" with the name of its file; save the batches again"
                        .into(),
                ));
            };
            let file = folder.join(name);
            progress.show_file(&file);
            report.bytes += access::metadata(&file).map_err(|e| Error::io(&file, e))?.len();
            report.push(&SafetensorsFile::open(&file, FileAccess::Map)?);
            let items = batch.get("items").and_then(Value::as_u64).unwrap_or(0);
            progress.add_rows(usize::try_from(items).unwrap_or(0));
        }
        progress.finish();
        Ok(Some(report))
    }

    fn push(&mut self, file: &SafetensorsFile) {
        for tensor in file.tensors() {
            let shape: Vec<_> = tensor.shape().iter().map(|size| (*size, *size)).collect();
            let (name, dtype) = (tensor.name(), format!("{:?}", tensor.dtype()));
            let known = self.tensors.iter_mut().find(|t| t.name == name && t.dtype == dtype);
            let Some(known) = known else {
                self.tensors.push(TensorRange {
                    name: name.to_owned(),
                    dtype,
                    batches: 1,
                    shape: Some(shape),
                    bytes: tensor.nbytes(),
                });
                continue;
            };
            known.batches += 1;
            known.bytes += tensor.nbytes();
            known.shape = known.shape.take().filter(|s| s.len() == shape.len()).map(|ranges| {
                let both = ranges.into_iter().zip(shape);
                both.map(|((least, most), (size, _))| (least.min(size), most.max(size))).collect()
            });
        }
    }

    pub(super) fn write_tables(&self, path: &Path, out: &mut impl Write) -> Outcome {
        let n = self.batches;
        writeln!(out, "{}: training batches", path.display())?;
        writeln!(
            out,
            "{} in {}",
            format_size(self.bytes.into()),
            format_count(n, "batch", "batches")
        )?;
        for (key, value) in self.index.as_object().into_iter().flatten() {
            if value.is_number() || value.is_string() || value.is_boolean() {
                writeln!(
                    out,
                    "{key}: {}",
                    value.as_str().map_or(value.to_string(), str::to_owned)
                )?;
            }
        }
        let mut tensors = TextTable::new(&["tensor", "type", "shape", "batches", "bytes"], 3);
        for tensor in &self.tensors {
            tensors.add_row([
                tensor.name.clone(),
                tensor.dtype.clone(),
                tensor.format_shape(),
                group_digits(tensor.batches),
                group_digits(tensor.bytes),
            ]);
        }
        tensors.write(out)
    }

    pub(super) fn to_json(&self, path: &Path) -> Value {
        let tensors: Vec<Value> = self
            .tensors
            .iter()
            .map(|t| {
                let side = |of: fn(&(usize, usize)) -> usize| {
                    t.shape.as_ref().map(|shape| shape.iter().map(of).collect::<Vec<_>>())
                };
                json!({
                    "name": t.name,
                    "type": t.dtype,
                    "batches": t.batches,
                    "min_shape": side(|range| range.0),
                    "max_shape": side(|range| range.1),
                    "bytes": t.bytes,
                })
            })
            .collect();
        json!({
            "path": path,
            "format": "batches",
            "batches": self.batches,
            "bytes": self.bytes,
            "index": self.index,
            "tensors": tensors,
        })
    }
}

impl TensorRange {
    /// Formats the sizes of the axes, such as `[8, 14..32]`.
    fn format_shape(&self) -> String {
        let Some(shape) = &self.shape else { return "different numbers of axes".to_owned() };
        let sizes = shape.iter().map(|(least, most)| match least == most {
            true => least.to_string(),
            false => format!("{least}..{most}"),
        });
        format!("[{}]", sizes.collect::<Vec<_>>().join(", "))
    }
}
