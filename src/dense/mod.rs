//! Dense tensors: a dtype, a shape and a buffer; how ragged data is padded, and memory for it.

mod buffer;
mod convert;
mod display;
mod dtype;
mod index;
mod options;
pub(crate) mod plan;
mod table;
mod tensor;

pub use buffer::BufferPool;
pub(crate) use buffer::{Block, Contents, MAPPED, Memory};
pub use convert::tensor_field;
pub(crate) use convert::unpack;
pub use display::DenseDisplay;
pub use dtype::{DType, Element};
pub(crate) use index::{Selection, broadcast, broadcast_positions};
pub use options::{DenseOptions, Fill, Side};
pub use table::{DenseSpec, Size, TableDenseOptions};
pub use tensor::DenseTensor;
pub(crate) use tensor::element_count;
