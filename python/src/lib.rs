//! The extension module `serrate._serrate` of the Python package `serrate`.
//!
//! Each file has one subject and is a thin layer over the Rust crate, which does all computation. Functions
//! that need no speed are in `python/serrate/*.py`.

mod array;
mod batching;
mod display;
mod dok;
mod errors;
mod hashmap;
mod het;
mod loader;
mod meds;
mod nrt;
mod numpy_memory;
mod progress;
mod python_lists;
mod ragged_batch;
mod run;
mod sql;
mod table;
mod tensor;

use pyo3::prelude::*;

#[pymodule]
mod _serrate {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::array::RaggedArray;
    #[pymodule_export]
    use crate::batching::{
        apply_mask_to_tensor, average_over_targets, batched_bool_indexing,
        batched_bool_indexing_write, batched_index_mapping, batched_indexing_access,
        batched_indexing_write, batched_inverse_indexing_access, combine_data,
        get_compact_from_named_tuple, get_compact_lists, get_indices_from_mask,
        get_mask_from_indices, squeeze_except_batch_and_sample, sum_over_targets,
    };
    #[pymodule_export]
    use crate::dok::DokTensor;
    #[pymodule_export]
    use crate::hashmap::PyHashMap;
    #[pymodule_export]
    use crate::het::HetTensor;
    #[pymodule_export]
    use crate::loader::{BatchLoader, EpochBatches};
    #[pymodule_export]
    use crate::meds::generate_meds;
    #[pymodule_export]
    use crate::nrt::{
        JointFile, build_stored_table, collate_stack, concat_tables, dense_stack, same_kinds,
        save_stored, take_merged, take_table,
    };
    #[pymodule_export]
    use crate::numpy_memory::NumpyMemory;
    #[pymodule_export]
    use crate::ragged_batch::RaggedBatch;
    #[pymodule_export]
    use crate::sql::{SqlResult, SqlSession};
    #[pymodule_export]
    use crate::table::RaggedTable;

    #[pymodule_init]
    fn init(_module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::run::remember_process();
        Ok(())
    }
}
