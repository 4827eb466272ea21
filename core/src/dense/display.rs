use std::fmt;

use super::DenseTensor;
use super::tensor::SHORT;

const SHOWN: usize = 4;

/// Displays the result of [`to_dense`](crate::table::RaggedTable::to_dense): type and shape of
/// every tensor, then its first rows, one per line.
///
/// Long rows are abbreviated.
///
/// ```
/// # use serrate_core as serrate;
/// use std::sync::Arc;
/// use arrow::array::{UInt8Array, UInt16Array};
/// use serrate::dense::{DenseDisplay, DenseOptions};
/// use serrate::table::RaggedTable;
///
/// let table = RaggedTable::builder()
///     .lengths([2, 0, 1])?
///     .column("age", 0, Arc::new(UInt8Array::from(vec![71, 38, 50])))
///     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9])))
///     .build()?;
/// let dense = table.to_dense(&DenseOptions::default())?;
/// assert_eq!(DenseDisplay(&dense).to_string(), "\
/// age: uint8[3] [71, 38, 50]
/// code: uint16[3, 2]
///   [7, 8]
///   [0, 0]
///   [9, 0]
/// dim1/mask: bool[3, 2]
///   [true, true]
///   [false, false]
///   [true, false]");
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct DenseDisplay<'a>(pub &'a [(String, DenseTensor)]);

impl fmt::Display for DenseDisplay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, tensor)) in self.0.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            if tensor.ndim() < 2 {
                write!(f, "{name}: {tensor}")?;
                continue;
            }
            write!(f, "{name}: {}{:?}", tensor.dtype(), tensor.shape())?;
            let (rows, strides) = (tensor.shape()[0], tensor.strides());
            for row in 0..rows.min(SHOWN) {
                f.write_str("\n  ")?;
                tensor.format_axis(f, 1, row * strides[0], &strides, SHORT)?;
            }
            if rows > SHOWN {
                write!(f, "\n  … {} more", rows - SHOWN)?;
            }
        }
        Ok(())
    }
}
