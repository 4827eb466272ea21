use std::str::FromStr;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, UInt64Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};

use super::LabelFeatures;
use super::feature_rows::FeatureRows;
use crate::array::record_batch::build_record_batch;
use crate::error::{Error, Result};

const MOST_COLUMNS: usize = 4096;

/// How a table represents features as columns.
///
/// Before these columns, the table has the columns of the label: `row` (index of the label, Int64),
/// `subject_id`, `prediction_time` and the values of the label.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FeatureForm {
    /// One column per feature, of the [type of its aggregate](super::FeatureAggregate::data_type).
    #[default]
    Columns,
    /// The column `features`: for each label, a list of the values of all features (Float64).
    List,
    /// The columns `feature` (list of UInt32) and `value` (list of Float64): only features with a
    /// value.
    Sparse,
}

impl FromStr for FeatureForm {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "columns" => Ok(Self::Columns),
            "list" => Ok(Self::List),
            "sparse" => Ok(Self::Sparse),
            _ => Err(Error::invalid(format!(
                "{text:?} is not a form of features; use 'columns', 'list' or 'sparse'"
            ))),
        }
    }
}

impl LabelFeatures {
    /// Returns the schema of a table of features whose columns have the form `form`.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use serrate::io::features::{FeatureKey, FeatureSpec};
    /// use serrate::io::features::LabelFeatures;
    /// # use serrate::io::meds::Labels;
    /// # use serrate::io::meds_torch::MedsFolder;
    /// # let data = MedsFolder::open("../tests/data/synthea-meds")?;
    /// # let labels = Labels::read("../tests/data/synthea-meds/labels")?;
    /// # let keys = vec![FeatureKey::Prefix("LAB//".into())];
    /// # let spec = FeatureSpec::try_new(keys, vec!["all".parse()?], vec!["count".parse()?])?;
    /// let features = LabelFeatures::new(data, labels, spec);
    /// use serrate::io::features::FeatureForm;
    /// let schema = features.schema(FeatureForm::Sparse)?;
    /// let names: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    /// assert_eq!((names[0], &names[4..]), ("row", &["feature", "value"][..]));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If [`FeatureForm::Columns`] has over 4,096 features, or [`FeatureForm::List`] 2^31 or more.
    pub fn schema(&self, form: FeatureForm) -> Result<SchemaRef> {
        let spec = self.spec();
        let mut fields: Vec<FieldRef> = vec![Arc::new(Field::new("row", DataType::Int64, false))];
        fields.extend(self.labels().schema().fields().iter().cloned());
        let list_of = |t: DataType| DataType::List(Arc::new(Field::new_list_field(t, true)));
        match form {
            FeatureForm::Columns => {
                if spec.num_features() > MOST_COLUMNS {
                    return Err(Error::invalid(format!(
                        "{} features exceed {MOST_COLUMNS}, the maximum number of columns; choose fewer codes, windows or aggregates, or the form 'sparse' or 'list'",
                        spec.num_features()
                    )));
                }
                fields.extend((0..spec.num_features()).map(|feature| {
                    let aggregate = spec.parts(feature).2;
                    let nullable = !aggregate.is_zero_of_nothing();
                    Arc::new(Field::new(spec.name(feature), aggregate.data_type(), nullable))
                }));
            }
            FeatureForm::List => {
                let item = Arc::new(Field::new_list_field(DataType::Float64, true));
                let width = i32::try_from(spec.num_features()).map_err(|_| {
                    Error::invalid(format!(
                        "{} features exceed 2^31 - 1, the maximum length of a list; use the form 'sparse'",
                        spec.num_features()
                    ))
                })?;
                let lists = DataType::FixedSizeList(item, width);
                fields.push(Arc::new(Field::new("features", lists, false)));
            }
            FeatureForm::Sparse => {
                fields.push(Arc::new(Field::new("feature", list_of(DataType::UInt32), false)));
                fields.push(Arc::new(Field::new("value", list_of(DataType::Float64), false)));
            }
        }
        Ok(Arc::new(Schema::new(fields)))
    }

    /// Returns a table of all labels: the column `row` (the index of the label), then the columns
    /// of the labels.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use serrate::io::features::{FeatureKey, FeatureSpec};
    /// use serrate::io::features::LabelFeatures;
    /// # use serrate::io::meds::Labels;
    /// # use serrate::io::meds_torch::MedsFolder;
    /// # let data = MedsFolder::open("../tests/data/synthea-meds")?;
    /// # let labels = Labels::read("../tests/data/synthea-meds/labels")?;
    /// # let keys = vec![FeatureKey::Prefix("LAB//".into())];
    /// # let spec = FeatureSpec::try_new(keys, vec!["all".parse()?], vec!["count".parse()?])?;
    /// let features = LabelFeatures::new(data, labels, spec);
    /// let labels = features.label_rows()?;
    /// assert_eq!((labels.num_rows(), labels.num_columns()), (1715, 4));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Never: every column has one value per label.
    pub fn label_rows(&self) -> Result<RecordBatch> {
        let rows = FeatureRows { labels: (0..self.labels().len()).collect(), ..Default::default() };
        let columns: Vec<usize> = (0..=self.labels().schema().fields().len()).collect();
        self.to_batch(&rows, FeatureForm::Sparse, &columns)
    }

    /// Returns the columns whose indices in the [schema](Self::schema) are `columns`, with one row
    /// for each label of `rows`.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::features::{FeatureForm, FeatureKey, FeatureSpec, LabelFeatures};
    /// use serrate::io::meds::Labels;
    /// use serrate::io::meds_torch::MedsFolder;
    /// let data = MedsFolder::open("../tests/data/synthea-meds")?;
    /// let labels = Labels::read("../tests/data/synthea-meds/labels")?;
    /// let keys = vec![FeatureKey::Prefix("LAB//".into())];
    /// let spec = FeatureSpec::try_new(keys, vec!["all".parse()?], vec!["count".parse()?])?;
    /// let features = LabelFeatures::new(data, labels, spec);
    /// let shard = features.read(0)?;
    /// let rows = shard.features(0..shard.num_labels().min(10))?;
    /// assert_eq!((rows.is_empty(), rows.iter().count()), (rows.len() == 0, rows.len()));
    /// let columns = features.schema(FeatureForm::Columns)?.fields().len();
    /// let batch = features.to_batch(&rows, FeatureForm::Columns, &[columns - 1])?;
    /// assert_eq!(batch.column(0).as_ref(), rows.to_columns(features.spec(), &[0])?[0].as_ref());
    /// assert_eq!(rows.to_list(features.spec())?.len(), rows.len());
    /// assert_eq!(rows.to_sparse()?.0.len(), rows.len());
    /// assert_eq!(features.label_rows()?.num_rows(), 1715);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a column does not exist, or the columns do not fit in memory.
    pub fn to_batch(
        &self,
        rows: &FeatureRows,
        form: FeatureForm,
        columns: &[usize],
    ) -> Result<RecordBatch> {
        let schema = Arc::new(self.schema(form)?.project(columns)?);
        let labels = self.labels().to_batch()?;
        // The columns before the features are `row` and the columns of the labels.
        let before = labels.num_columns() + 1;
        let positions = UInt64Array::from_iter_values(rows.labels.iter().map(|l| *l as u64));
        let wanted: Vec<usize> = columns.iter().filter_map(|c| c.checked_sub(before)).collect();
        let mut features = match form {
            _ if wanted.is_empty() => Vec::new(),
            FeatureForm::Columns => rows.to_columns(self.spec(), &wanted)?,
            FeatureForm::List => vec![rows.to_list(self.spec())?; wanted.len()],
            FeatureForm::Sparse => {
                let (numbers, values) = rows.to_sparse()?;
                let column = |c: &usize| if *c == 0 { numbers.clone() } else { values.clone() };
                wanted.iter().map(column).collect()
            }
        }
        .into_iter();
        let arrays = columns
            .iter()
            .filter_map(|column| {
                Some(match column {
                    0 => {
                        let rows =
                            rows.labels.iter().map(|l| i64::try_from(*l).unwrap_or(i64::MAX));
                        Ok(Arc::new(Int64Array::from_iter_values(rows)) as ArrayRef)
                    }
                    column if *column < before => {
                        take(labels.column(*column - 1), &positions, None).map_err(Error::from)
                    }
                    _ => Ok(features.next()?),
                })
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(build_record_batch(schema, arrays, rows.len())?)
    }
}
