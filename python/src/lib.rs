//! The module `serrate._serrate`: what the Python package `serrate` is made of.
//!
//! One file per subject, each a thin layer over the Rust crate. Nothing here computes; what is not in the
//! crate is in `python/serrate/*.py` where it needs no speed.

mod array;
mod display;
mod errors;
mod loader;
mod memory;
mod nested;
mod nrt;
mod run;
mod sql;
mod table;

use pyo3::prelude::*;

#[pymodule]
mod _serrate {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::array::RaggedArray;
    #[pymodule_export]
    use crate::loader::{BatchLoader, Batches};
    #[pymodule_export]
    use crate::memory::Memory;
    #[pymodule_export]
    use crate::nrt::{
        JointFile, concat_tables, same_kinds, save_stored, table_of_stored, take_table,
    };
    #[pymodule_export]
    use crate::sql::{Result, Session};
    #[pymodule_export]
    use crate::table::RaggedTable;

    #[pymodule_init]
    fn init(_module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::run::remember_process();
        Ok(())
    }
}
