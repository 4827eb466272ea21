//! `vocab('FILE')`: the tokens and codes of a vocabulary as a table.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray, UInt32Array};
use arrow::datatypes::{DataType, Field, Schema};
use datafusion::catalog::{MemTable, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::plan_err;
use datafusion::error::Result;

use crate::functions::find_local_codes;
use crate::io::meds::Vocabulary;
use crate::sql::sources::as_literal_str;

/// Table function `vocab('FILE')`: returns the columns `token` and `code` of a vocabulary in the
/// order of the tokens. The path is a `codes.parquet`, or the folder of a MEDS data set or of a
/// tensorized cohort that contains one.
#[derive(Debug, Default)]
pub(crate) struct VocabFunction;

impl TableFunctionImpl for VocabFunction {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        if let [path] = args.exprs()
            && let Some(path) = as_literal_str(path)
        {
            let vocabulary = Vocabulary::read(find_local_codes(path)?)?;
            let tokens = vocabulary.iter().map(|(_, token)| token);
            let tokens: ArrayRef = Arc::new(UInt32Array::from_iter_values(tokens));
            let codes = vocabulary.iter().map(|(code, _)| code);
            let codes: ArrayRef = Arc::new(StringArray::from_iter_values(codes));
            let schema = Arc::new(Schema::new(vec![
                Field::new("token", DataType::UInt32, false),
                Field::new("code", DataType::Utf8, false),
            ]));
            let batch = RecordBatch::try_new(Arc::clone(&schema), vec![tokens, codes])?;
            return Ok(Arc::new(MemTable::try_new(schema, vec![vec![batch]])?));
        }
        plan_err!(
            "vocab takes one string in single quotes, the path of a codes.parquet or of a folder that \
             contains one, such as vocab('DIR/metadata/codes.parquet'); found vocab({})",
            args.exprs().iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        )
    }
}
