//! Dense tensors: a dtype, a shape and a buffer.

mod convert;
mod dtype;
mod tensor;

pub use convert::tensor_field;
pub use dtype::{DType, Element};
pub use tensor::DenseTensor;
