//! Index expressions: indexing a table, a column or a tensor returns an error or a valid result,
//! and a dense and a sparse tensor of the same values return equal elements.

use std::sync::{Arc, LazyLock};

use crate::{FIXED, check_array, check_table, read_within};
use arrow::array::{ArrayRef, Float32Array, Int64Array};
use serrate::dense::DenseTensor;
use serrate::dok::DokTensor;
use serrate::index::parse_index;
use serrate::table::RaggedTable;
use serrate::{HetTensor, RaggedBatch, Result, kernels};

struct IndexSamples {
    table: RaggedTable,
    dense: DenseTensor,
    sparse: DokTensor,
    het: HetTensor,
    batch: RaggedBatch,
}

static SAMPLES: LazyLock<IndexSamples> =
    LazyLock::new(|| build_samples().unwrap_or_else(|e| panic!("{e}")));

fn build_samples() -> Result<IndexSamples> {
    let time: ArrayRef = Arc::new(Int64Array::from(vec![Some(3), None, Some(5), Some(1)]));
    let code: ArrayRef = Arc::new(Float32Array::from(vec![0.5, -1.0, f32::NAN, 2.0, 7.0, 9.0]));
    let table = RaggedTable::builder()
        .lengths([3, 0, 0, 1])?
        .lengths([2, 0, 3, 1])?
        .column("id", 0, Arc::new(Int64Array::from(vec![7, 8, 9, 10])))
        .column("time", 1, time)
        .column("code", 2, code)
        .build()?;
    let dense = DenseTensor::from_vec([2, 3, 4], (0..24i32).collect::<Vec<_>>())?;
    let sparse = DokTensor::from_dense(&dense)?;
    let het = HetTensor::from_ragged(&table.array("code")?)?;
    let batch = RaggedBatch::from_column(
        &table.without_null_lists().nan_to_null()?.select(&["time"])?,
        "time",
    )
    .or_else(|_| RaggedBatch::from_full_tensor(&dense, 1, 1))?;
    Ok(IndexSamples { table, dense, sparse, het, batch })
}

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let s = &*SAMPLES;
    let Ok(items) = read_within(data, FIXED, || parse_index(text)) else { return };
    // The length of the text bounds the number of selected elements.
    let beyond = 64 << 20;
    if let Ok(table) = read_within(data, beyond, || s.table.index(&items)) {
        check_table(&table);
    }
    for name in ["id", "time", "code"] {
        let array = s.table.array(name).unwrap_or_else(|e| panic!("{e}"));
        if let Ok(found) = read_within(data, beyond, || kernels::index::get(&array, &items))
            && let Ok(found) = found.to_arrow()
        {
            check_array(&found);
        }
    }
    let dense = read_within(data, beyond, || s.dense.index(&items));
    let sparse = read_within(data, beyond, || s.sparse.index(&items));
    if let (Ok(dense), Ok(sparse)) = (&dense, &sparse) {
        assert_eq!(dense, sparse, "dense and sparse");
    }
    let _ = (s.sparse.index_orthogonal(&items), s.sparse.index_sparse(&items));
    let _ = (read_within(data, beyond, || s.het.index(&items)), s.batch.index(&items));
}
