//! Conditions on timestamps that have a coarser unit in a Parquet file than in the table.

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::error::Result;
use datafusion::physical_expr::expressions::CastExpr;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_expr_adapter::{
    DefaultPhysicalExprAdapterFactory, PhysicalExprAdapter, PhysicalExprAdapterFactory,
};

use crate::sql::mends::dependencies::COMPUTED_COLUMN;

/// Adapts expressions to each file as DataFusion does, with one difference: conditions compare
/// timestamps in the unit of the table, even if the file stores them in a coarser unit.
///
/// DataFusion compares them in the unit of the file and truncates the literal. In a file with
/// milliseconds, `t = '00:00:00.0005'` is then true for 00:00:00. Obsolete once the test
/// `stock_conditions_on_coarser_files_still_round` fails.
#[derive(Debug)]
pub(in crate::sql) struct ExactTimesFactory;

impl ExactTimesFactory {
    /// Returns this factory for a table with timestamps. Returns `None`, which means DataFusion's
    /// factory, for any other table.
    pub(in crate::sql) fn of_table(schema: &Schema) -> Option<Arc<dyn PhysicalExprAdapterFactory>> {
        let is_time = |t: &DataType| matches!(t, DataType::Timestamp(..));
        let has_times = schema.fields().iter().any(|field| is_time(field.data_type()));
        has_times.then(|| Arc::new(Self) as Arc<dyn PhysicalExprAdapterFactory>)
    }

    /// Whether a scan adapts expressions by DataFusion's factory or by this one.
    pub(in crate::sql) fn is_known(files: &FileScanConfig) -> bool {
        // A factory can be identified only by its debug text.
        let is_ours =
            |f: &Arc<dyn PhysicalExprAdapterFactory>| format!("{f:?}") == format!("{Self:?}");
        files.expr_adapter_factory.as_ref().is_none_or(is_ours)
    }
}

impl PhysicalExprAdapterFactory for ExactTimesFactory {
    fn create(&self, table: SchemaRef, file: SchemaRef) -> Result<Arc<dyn PhysicalExprAdapter>> {
        let of_file = |name: &str| file.field_with_name(name).ok().map(|f| f.data_type().clone());
        let is_coarser = table.fields().iter().any(|field| {
            matches!(
                (of_file(field.name()), field.data_type()),
                (Some(DataType::Timestamp(from, _)), DataType::Timestamp(to, _)) if from < *to
            )
        });
        let stock = DefaultPhysicalExprAdapterFactory.create(table, Arc::clone(&file))?;
        Ok(match is_coarser {
            true => Arc::new(ExactTimes { stock, file }),
            false => stock,
        })
    }
}

#[derive(Debug)]
struct ExactTimes {
    stock: Arc<dyn PhysicalExprAdapter>,
    file: SchemaRef,
}

impl PhysicalExprAdapter for ExactTimes {
    fn rewrite(&self, expr: Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
        let adapted = self.stock.rewrite(expr)?;
        let hide = |e: Arc<dyn PhysicalExpr>| {
            let Some(cast) = e.downcast_ref::<CastExpr>() else { return Ok(Transformed::no(e)) };
            let types = (cast.expr().data_type(&self.file)?, cast.cast_type());
            if !matches!(types, (DataType::Timestamp(from, _), DataType::Timestamp(to, _)) if from < *to)
            {
                return Ok(Transformed::no(e));
            }
            let (function, config) = (Arc::clone(&COMPUTED_COLUMN), ConfigOptions::default());
            let hidden =
                ScalarFunctionExpr::try_new(function, vec![e], &self.file, Arc::new(config))?;
            Ok(Transformed::yes(Arc::new(hidden) as Arc<dyn PhysicalExpr>))
        };
        adapted.transform_up(hide).data()
    }
}
