//! Features of labels in sparse form.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanBufferBuilder, FixedSizeListArray, Float32Array, Float64Array, Int64Array,
    ListArray, UInt32Array,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field};

use super::feature_spec::{FeatureAggregate, FeatureSpec};
use crate::array::Offsets;
use crate::error::{Error, Result};

/// Features of some labels in sparse form: for each label, only the features that have a value, in
/// ascending order.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::io::features::{FeatureKey, FeatureRows, FeatureSpec};
/// let keys = vec![FeatureKey::Prefix("LAB//".into())];
/// let aggregates = vec!["count".parse()?, "mean".parse()?];
/// let spec = FeatureSpec::try_new(keys, vec!["all".parse()?], aggregates)?;
/// // Label 0 has 2 measurements with a mean of 1.5, label 3 has none.
/// let rows = FeatureRows {
///     labels: vec![0, 3],
///     counts: vec![2, 0],
///     features: vec![0, 1],
///     values: vec![2.0, 1.5],
/// };
/// assert_eq!((rows.len(), rows.is_empty()), (2, false));
/// assert_eq!(rows.iter().next(), Some((0, &[0, 1][..], &[2.0, 1.5][..])));
/// // A count of nothing is 0, a mean of nothing is NULL.
/// let columns = rows.to_columns(&spec, &[0, 1])?;
/// assert_eq!((columns[0].null_count(), columns[1].null_count()), (0, 1));
/// assert_eq!(rows.to_list(&spec)?.len(), 2);
/// let (features, values) = rows.to_sparse()?;
/// assert_eq!((features.len(), values.len()), (2, 2));
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FeatureRows {
    /// Index of each label among the labels of all shards.
    pub labels: Vec<usize>,
    /// Number of features with a value, for each label.
    pub counts: Vec<usize>,
    /// Indices of the features, label by label.
    pub features: Vec<u32>,
    /// Values of the features, in the order of `features`.
    pub values: Vec<f64>,
}

impl FeatureAggregate {
    /// Returns the Arrow type of the results: Int64 for counts, Float32 for min, max, first and
    /// last, else Float64.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use arrow::datatypes::DataType;
    /// use serrate::io::features::FeatureAggregate;
    /// assert_eq!(FeatureAggregate::Count.data_type(), DataType::Int64);
    /// assert_eq!(FeatureAggregate::Mean.data_type(), DataType::Float64);
    /// ```
    pub fn data_type(self) -> DataType {
        match self {
            Self::Count | Self::ValueCount => DataType::Int64,
            Self::Sum | Self::SumOfSquares | Self::Mean | Self::Slope => DataType::Float64,
            Self::Min | Self::Max | Self::First | Self::Last => DataType::Float32,
        }
    }
}

impl FeatureRows {
    /// Returns the number of labels.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Returns whether there are no labels.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Iterates over the labels: index of the label, indices of its features, and their values.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::features::FeatureRows;
    /// // Label 0 has 2 measurements with a mean of 1.5, label 3 has none.
    /// let (labels, counts) = (vec![0, 3], vec![2, 0]);
    /// let rows = FeatureRows { labels, counts, features: vec![0, 1], values: vec![2.0, 1.5] };
    /// let (label, features, values) = rows.iter().next().unwrap();
    /// assert_eq!((label, features, values), (0, &[0, 1][..], &[2.0, 1.5][..]));
    /// assert_eq!(rows.iter().map(|(_, features, _)| features.len()).last(), Some(0));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = (usize, &[u32], &[f64])> {
        let mut start = 0;
        self.labels.iter().zip(&self.counts).map(move |(label, count)| {
            let range = start..start + count;
            start = range.end;
            (*label, &self.features[range.clone()], &self.values[range])
        })
    }

    /// Returns a column for each of `features` (indices of features in `spec`), with one value per
    /// label.
    ///
    /// For a label with nothing to aggregate, counts and sums are 0, and other aggregates are NULL.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::features::{FeatureKey, FeatureRows, FeatureSpec};
    /// # let keys = vec![FeatureKey::Prefix("LAB//".into())];
    /// # let aggregates = vec!["count".parse()?, "mean".parse()?];
    /// # let spec = FeatureSpec::try_new(keys, vec!["all".parse()?], aggregates)?;
    /// // Label 0 has 2 measurements with a mean of 1.5, label 3 has none.
    /// let (labels, counts) = (vec![0, 3], vec![2, 0]);
    /// let rows = FeatureRows { labels, counts, features: vec![0, 1], values: vec![2.0, 1.5] };
    /// # use arrow::array::{Float64Array, Int64Array};
    /// let columns = rows.to_columns(&spec, &[0, 1])?;
    /// assert_eq!(columns[0].as_ref(), &Int64Array::from(vec![2, 0]));
    /// assert_eq!(columns[1].as_ref(), &Float64Array::from(vec![Some(1.5), None]));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the columns do not fit in memory, or a feature does not exist.
    pub fn to_columns(&self, spec: &FeatureSpec, features: &[usize]) -> Result<Vec<ArrayRef>> {
        let rows = self.len();
        let mut place = vec![None; spec.num_features()];
        for (i, feature) in features.iter().enumerate() {
            let slot = place
                .get_mut(*feature)
                .ok_or_else(|| make_unknown_feature_error(*feature, spec))?;
            *slot = Some(i);
        }
        let (values, valid) = self.scatter_columns(features.len(), |feature| place[feature])?;
        features
            .iter()
            .enumerate()
            .map(|(i, feature)| {
                // If `features` repeats a feature, only its last column has been filled: use that.
                let at = place[*feature].unwrap_or(i);
                let aggregate = spec.parts(*feature).2;
                let values = &values[at * rows..(at + 1) * rows];
                let valid = &valid[at * rows..(at + 1) * rows];
                Ok(build_column(aggregate, values, valid))
            })
            .collect()
    }

    /// Returns dense columns, one per requested feature, with one element per label: the values,
    /// and whether each exists. `place` returns the column of a feature, if it is requested.
    fn scatter_columns(
        &self,
        columns: usize,
        place: impl Fn(usize) -> Option<usize>,
    ) -> Result<(Vec<f64>, Vec<bool>)> {
        let rows = self.len();
        let size = columns.checked_mul(rows).filter(|n| *n <= isize::MAX as usize / 16);
        let size = size.ok_or_else(|| {
            Error::invalid(format!(
                "{rows} labels with {columns} features do not fit in memory; use the form 'sparse'"
            ))
        })?;
        let (mut values, mut valid) = (vec![0.0; size], vec![false; size]);
        for (row, (_, features, own)) in self.iter().enumerate() {
            for (feature, value) in features.iter().zip(own) {
                if let Some(column) = place(*feature as usize) {
                    values[column * rows + row] = *value;
                    valid[column * rows + row] = true;
                }
            }
        }
        Ok((values, valid))
    }

    /// Returns all features as one FixedSizeList column of Float64.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::features::{FeatureKey, FeatureRows, FeatureSpec};
    /// # let keys = vec![FeatureKey::Prefix("LAB//".into())];
    /// # let aggregates = vec!["count".parse()?, "mean".parse()?];
    /// # let spec = FeatureSpec::try_new(keys, vec!["all".parse()?], aggregates)?;
    /// // Label 0 has 2 measurements with a mean of 1.5, label 3 has none.
    /// let (labels, counts) = (vec![0, 3], vec![2, 0]);
    /// let rows = FeatureRows { labels, counts, features: vec![0, 1], values: vec![2.0, 1.5] };
    /// # use arrow::array::{Array, AsArray};
    /// let lists = rows.to_list(&spec)?;
    /// let second = lists.as_fixed_size_list().value(1);
    /// assert_eq!((lists.len(), second.null_count()), (2, 1)); // no mean
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the lists do not fit in memory, or there are 2^31 features or more.
    pub fn to_list(&self, spec: &FeatureSpec) -> Result<ArrayRef> {
        let width = spec.num_features();
        let size = i32::try_from(width).map_err(|_| {
            Error::invalid(format!(
                "a list of {width} features exceeds the maximum of 2^31 - 1; use the form 'sparse'"
            ))
        })?;
        let slots = self.len().checked_mul(width).filter(|n| *n <= isize::MAX as usize / 16);
        let slots = slots.ok_or_else(|| {
            Error::invalid(format!(
                "{} labels with {width} features do not fit in memory; use the form 'sparse'",
                self.len()
            ))
        })?;
        let zero: Vec<bool> = (0..width).map(|f| spec.parts(f).2.is_zero_of_nothing()).collect();
        let mut values = vec![0.0; slots];
        let mut valid = BooleanBufferBuilder::new(slots);
        for _ in 0..self.len() {
            valid.append_slice(&zero);
        }
        for (row, (_, features, own)) in self.iter().enumerate() {
            for (feature, value) in features.iter().zip(own) {
                let at = row * width + *feature as usize;
                values[at] = *value;
                valid.set_bit(at, true);
            }
        }
        let nulls = NullBuffer::new(valid.finish());
        let values = Float64Array::try_new(values.into(), Some(nulls))?;
        let field = Arc::new(Field::new_list_field(DataType::Float64, true));
        Ok(Arc::new(FixedSizeListArray::try_new_with_length(
            field,
            size,
            Arc::new(values),
            None,
            self.len(),
        )?))
    }

    /// Returns the features with a value as two list columns: their indices (UInt32) and values
    /// (Float64).
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use arrow::array::{AsArray, Float64Array};
    /// use serrate::io::features::FeatureRows;
    /// // Label 0 has 2 measurements with a mean of 1.5, label 3 has none.
    /// let (labels, counts) = (vec![0, 3], vec![2, 0]);
    /// let rows = FeatureRows { labels, counts, features: vec![0, 1], values: vec![2.0, 1.5] };
    /// let (features, values) = rows.to_sparse()?;
    /// assert_eq!(features.as_list::<i32>().value_length(1), 0);
    /// assert_eq!(values.as_list::<i32>().value(0).as_ref(), &Float64Array::from(vec![2.0, 1.5]));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there are too many values for 32-bit offsets.
    pub fn to_sparse(&self) -> Result<(ArrayRef, ArrayRef)> {
        let offsets = Offsets::from_lengths(self.counts.iter().copied())?.to_i32()?;
        let list = |values: ArrayRef| -> Result<ArrayRef> {
            let field = Arc::new(Field::new_list_field(values.data_type().clone(), true));
            Ok(Arc::new(ListArray::try_new(field, offsets.clone(), values, None)?))
        };
        let features = UInt32Array::from(self.features.clone());
        let values = Float64Array::from(self.values.clone());
        Ok((list(Arc::new(features))?, list(Arc::new(values))?))
    }
}

fn make_unknown_feature_error(feature: usize, spec: &FeatureSpec) -> Error {
    Error::OutOfRange {
        axis: 1,
        index: i64::try_from(feature).unwrap_or(i64::MAX),
        size: spec.num_features(),
    }
}

fn build_column(aggregate: FeatureAggregate, values: &[f64], valid: &[bool]) -> ArrayRef {
    let nulls = || NullBuffer::from(valid.to_vec());
    match aggregate.data_type() {
        // Counts are far below 2^53, so the cast is exact.
        #[allow(clippy::cast_possible_truncation)]
        DataType::Int64 => Arc::new(Int64Array::from_iter_values(values.iter().map(|v| *v as i64))),
        // Minimum, maximum, first and last are one of the 32-bit values, so the cast is exact.
        #[allow(clippy::cast_possible_truncation)]
        DataType::Float32 => Arc::new(Float32Array::new(
            values.iter().map(|v| *v as f32).collect::<Vec<_>>().into(),
            Some(nulls()),
        )),
        _ if aggregate.is_zero_of_nothing() => Arc::new(Float64Array::from(values.to_vec())),
        _ => Arc::new(Float64Array::new(values.to_vec().into(), Some(nulls()))),
    }
}
