//! Adapts expressions to files whose columns have other types than the table, without loss.

use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock};

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, FieldRef, Fields, Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{exec_datafusion_err, internal_err};
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::error::Result;
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_expr_adapter::{
    DefaultPhysicalExprAdapterFactory, PhysicalExprAdapter, PhysicalExprAdapterFactory,
};

use crate::sql::sources::exact_casts::{
    InexactConversion, convert_exact, format_unheld_message, holds_all,
};
use crate::sql::sources::exact_texts::TextRules;

/// Adapts expressions to each file as DataFusion does, with three differences. A value that the
/// type of the table cannot hold is an error. If a file has times in a coarser unit than the table,
/// conditions compare these times in the unit of the table. If a file has local times and the table
/// a zone other than UTC, conditions compare the instants of these times in this zone.
///
/// DataFusion truncates fractions and digits of seconds, and compares times in the unit of the file
/// with a truncated literal, so that `t = '00:00:00.0005'` is true for the time 00:00:00 in a file
/// with milliseconds. This workaround is obsolete once the tests
/// `stock_conditions_on_coarser_files_still_round` and `stock_fractions_in_files_are_still_cut`
/// fail.
#[derive(Debug)]
pub(in crate::sql) struct ExactCasts;

static EXACT_CASTS: LazyLock<Arc<dyn PhysicalExprAdapterFactory>> =
    LazyLock::new(|| Arc::new(ExactCasts));

impl ExactCasts {
    pub(in crate::sql) fn new_shared_factory() -> Arc<dyn PhysicalExprAdapterFactory> {
        Arc::clone(&EXACT_CASTS)
    }

    /// Whether the adapter of a scan is DataFusion's or this one, and not one of another program.
    pub(in crate::sql) fn is_known(files: &FileScanConfig) -> bool {
        let factory = files.expr_adapter_factory.as_ref();
        factory.is_none_or(|factory| Arc::ptr_eq(factory, &EXACT_CASTS))
    }
}

impl PhysicalExprAdapterFactory for ExactCasts {
    fn create(&self, table: SchemaRef, file: SchemaRef) -> Result<Arc<dyn PhysicalExprAdapter>> {
        let mut fields: Vec<FieldRef> = table.fields().iter().map(Arc::clone).collect();
        let mut exact: HashMap<String, FieldRef> = HashMap::new();
        for (at, field) in fields.iter_mut().enumerate() {
            // Most files have the table's order of columns, so the same position is tried first.
            let in_place = file.fields().get(at).filter(|found| found.name() == field.name());
            let found = in_place.or_else(|| file.fields().find(field.name()).map(|(_, f)| f));
            let Some(found) = found else { continue };
            if !holds_all(found.data_type(), field.data_type()) {
                exact.insert(field.name().clone(), Arc::clone(field));
                // The field gets the type of the file, because DataFusion's adapter then does not
                // convert the column. [`ExactAdapter`] converts it.
                *field = Arc::clone(found);
            }
        }
        let logical = match exact.is_empty() {
            true => table,
            false => Arc::new(Schema::new_with_metadata(fields, table.metadata().clone())),
        };
        let stock = DefaultPhysicalExprAdapterFactory.create(logical, Arc::clone(&file))?;
        Ok(match exact.is_empty() {
            true => stock,
            false => Arc::new(ExactAdapter { stock, exact, file }),
        })
    }
}

#[derive(Debug)]
struct ExactAdapter {
    stock: Arc<dyn PhysicalExprAdapter>,
    /// Columns of the table, by name, whose type may not hold every value of the same column in the
    /// file.
    exact: HashMap<String, FieldRef>,
    file: SchemaRef,
}

impl PhysicalExprAdapter for ExactAdapter {
    fn rewrite(&self, expr: Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
        let adapted = self.stock.rewrite(expr)?;
        let convert = |e: Arc<dyn PhysicalExpr>| {
            if let Some(column) = e.downcast_ref::<Column>() {
                let Some(field) = self.exact.get(column.name()) else {
                    return Ok(Transformed::no(e));
                };
                let (column, to) = (column.name().to_owned(), Arc::clone(field));
                let cast = ExactCast { input: e, column, to };
                return Ok(Transformed::yes(Arc::new(cast) as Arc<dyn PhysicalExpr>));
            }
            match self.narrow_cast(&e)? {
                Some(narrow) => Ok(Transformed::yes(narrow)),
                None => Ok(Transformed::no(e)),
            }
        };
        adapted.transform_up(convert).data()
    }
}

impl ExactAdapter {
    /// If `expr` reads a field of a converted struct, returns an expression that converts only this
    /// field, so that the scan recognizes a condition on a field that the reader of the file can
    /// evaluate. Else returns `None`.
    fn narrow_cast(&self, expr: &Arc<dyn PhysicalExpr>) -> Result<Option<Arc<dyn PhysicalExpr>>> {
        let Some(call) = expr.downcast_ref::<ScalarFunctionExpr>() else { return Ok(None) };
        let Some((cast, keys)) = call.args().split_first() else { return Ok(None) };
        let Some(cast) = cast.downcast_ref::<ExactCast>().filter(|_| call.name() == "get_field")
        else {
            return Ok(None);
        };
        let DataType::Struct(mut in_table) = cast.to.data_type().clone() else { return Ok(None) };
        let DataType::Struct(mut in_file) = cast.input.data_type(&self.file)? else {
            return Ok(None);
        };
        let mut column = cast.column.clone();
        // A field of a NULL struct is NULL even if the field itself is required.
        let mut nullable = cast.to.is_nullable();
        let mut found: Option<(FieldRef, Option<FieldRef>)> = None;
        for key in keys {
            let name = key.downcast_ref::<Literal>().and_then(|l| l.value().try_as_str().flatten());
            let Some(name) = name else { return Ok(None) };
            let Some(to) = find_field(&in_table, name) else { return Ok(None) };
            let from = find_field(&in_file, name);
            column = format!("{column}.{name}");
            nullable |= to.is_nullable();
            in_table = find_struct_fields(Some(&to));
            in_file = find_struct_fields(from.as_ref());
            found = Some((to, from));
        }
        let Some((to, from)) = found else { return Ok(None) };
        let Some(from) = from else {
            // The struct in the file lacks the field, so its value is NULL.
            let null = datafusion::common::ScalarValue::try_from(to.data_type())?;
            return Ok(Some(Arc::new(Literal::new(null))));
        };
        let mut args = vec![Arc::clone(&cast.input)];
        args.extend(keys.iter().map(Arc::clone));
        let field = ScalarFunctionExpr::try_new(
            Arc::new(call.fun().clone()),
            args,
            &self.file,
            Arc::new(call.config_options().clone()),
        )?;
        let field: Arc<dyn PhysicalExpr> = Arc::new(field);
        Ok(Some(match from.data_type() == to.data_type() {
            true => field,
            false => {
                let to = Arc::new(to.as_ref().clone().with_nullable(nullable));
                Arc::new(ExactCast { input: field, column, to })
            }
        }))
    }
}

fn find_field(fields: &Fields, name: &str) -> Option<FieldRef> {
    fields.iter().find(|field| field.name() == name).cloned()
}

fn find_struct_fields(field: Option<&FieldRef>) -> Fields {
    match field.map(|field| field.data_type()) {
        Some(DataType::Struct(fields)) => fields.clone(),
        _ => Fields::empty(),
    }
}

/// Converts a column of a file to its type in the table. DataFusion's optimizer does not know this
/// expression, and so does not rewrite it as it rewrites a cast.
#[derive(Debug, Eq)]
struct ExactCast {
    input: Arc<dyn PhysicalExpr>,
    /// Name of the column for messages.
    column: String,
    to: FieldRef,
}

impl PartialEq for ExactCast {
    fn eq(&self, other: &Self) -> bool {
        self.input.eq(&other.input) && self.column == other.column && self.to == other.to
    }
}

impl Hash for ExactCast {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.input.hash(state);
        self.column.hash(state);
        self.to.hash(state);
    }
}

impl fmt::Display for ExactCast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "exact_cast({} AS {})", self.input, self.to.data_type())
    }
}

impl PhysicalExpr for ExactCast {
    fn data_type(&self, _input: &Schema) -> Result<DataType> {
        Ok(self.to.data_type().clone())
    }

    fn nullable(&self, _input: &Schema) -> Result<bool> {
        Ok(self.to.is_nullable())
    }

    fn return_field(&self, _input: &Schema) -> Result<FieldRef> {
        Ok(Arc::clone(&self.to))
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let values = self.input.evaluate(batch)?.into_array(batch.num_rows())?;
        let to = self.to.data_type();
        match convert_exact(&values, to, TextRules::default()) {
            Ok(converted) => Ok(ColumnarValue::Array(converted)),
            Err(InexactConversion::Failed(e)) => Err(exec_datafusion_err!(
                "the column '{}' of the type {} cannot be converted to {to}, its type in the table; declare another type: {e}",
                self.column,
                values.data_type()
            )),
            Err(InexactConversion::Value { text, .. }) => {
                Err(exec_datafusion_err!("{}", format_unheld_message(&self.column, to, &text, "")))
            }
        }
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.input]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        let count = children.len();
        match (children.pop(), children.is_empty()) {
            (Some(input), true) => {
                let (column, to) = (self.column.clone(), Arc::clone(&self.to));
                Ok(Arc::new(Self { input, column, to }))
            }
            _ => {
                internal_err!("internal error: a cast takes 1 input, not {count}; please report it")
            }
        }
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CAST(")?;
        self.input.fmt_sql(f)?;
        write!(f, " AS {})", self.to.data_type())
    }
}
