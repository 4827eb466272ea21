//! Dense tensors: element types, padding options, and the memory of dense results.

mod buffer;
mod convert;
pub(crate) mod dense_plan;
pub mod densify;
mod display;
mod dtype;
mod index;
pub mod mask;
mod options;
pub(crate) mod padding;
mod table_tensors;
mod tensor;

pub use buffer::BufferPool;
pub(crate) use buffer::{BlockContents, FreeBlocks, MIN_MAPPED_BYTES, MemoryBlock, TensorMemory};
pub use convert::tensor_field;
pub(crate) use convert::unpack_bits;
pub use display::DenseDisplay;
pub use dtype::{DType, TensorElement};
#[cfg(feature = "batching")]
pub(crate) use index::IndexSelection;
pub use options::{DenseOptions, Fill};
pub use table_tensors::{AxisSize, DenseSpec, TableDenseOptions};
pub use tensor::DenseTensor;

pub use crate::kernels::side::PaddingSide;
pub(crate) use tensor::count_shape_elements;
