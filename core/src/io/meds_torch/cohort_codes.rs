//! [`CohortCodes`]: token, mean and standard deviation of each code, and `metadata/codes.parquet`.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Float32Array, Float64Array, LargeStringArray, RecordBatch,
    UInt32Array, UInt64Array,
};
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, Field, Float64Type, Schema};
use parquet::arrow::ArrowWriter;

use super::code_statistics::{CodeCounts, FittedCodes};
use super::schemas::make_writer_properties;
use super::{Normalize, TensorizeOptions, VocabularyFrom};
use crate::access;
use crate::array::record_batch::build_record_batch;
use crate::error::{Error, Result};
use crate::io::atomic::AtomicFile;
use crate::io::meds::file::MedsFile;
use crate::io::meds::{MedsDataset, SubjectSplits, Vocabulary};
use crate::io::parquet::stored_types::to_stored;

const INDEX: &str = "code/vocab_index";
const MEAN: &str = "values/mean";
const STD: &str = "values/std";
const COUNTED: [&str; 5] = [
    "code/n_occurrences",
    "code/n_subjects",
    "values/n_occurrences",
    "values/sum",
    "values/sum_sqd",
];

#[derive(Clone, Copy, Debug)]
pub(super) struct CodeEntry {
    pub(super) token: u32,
    /// Mean of the values of the code. A value is normalized as `(value - mean) / std`.
    pub(super) mean: f64,
    pub(super) std: f64,
    /// Whether `mean` and `std` are known. If not, normalized values are NULL in tables and NaN in
    /// tensors.
    pub(super) scaled: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueArithmetic {
    Raw,
    Single,
    Double,
}

#[derive(Debug)]
pub(super) struct CohortCodes {
    by_code: HashMap<Arc<str>, CodeEntry>,
    pub(super) arithmetic: ValueArithmetic,
    pub(super) token_type: DataType,
    table: RecordBatch,
}

impl CohortCodes {
    pub(super) fn build_codes(
        dataset: &MedsDataset,
        splits: &SubjectSplits,
        options: &TensorizeOptions,
        jobs: usize,
    ) -> Result<Self> {
        let path = dataset.root().join("metadata").join("codes.parquet");
        let old = OldCodes::read(&path)?;
        let from_file = match options.vocabulary {
            VocabularyFrom::FileOrTrain => old.find_column(INDEX).is_some(),
            VocabularyFrom::Train => false,
            VocabularyFrom::File if old.table.is_some() => true,
            VocabularyFrom::File => {
                return Err(Error::file(
                    path,
                    "the data set has no file metadata/codes.parquet, but the options take the vocabulary from this file; add the file, or take the vocabulary from the train split",
                ));
            }
        };
        let given = old.find_column(MEAN).is_some() && old.find_column(STD).is_some();
        let counted = match options.normalize {
            Normalize::No | Normalize::ByFile => false,
            Normalize::Compatible | Normalize::Exact => !given,
        };
        let fitted = match counted || !from_file {
            true => Some(FittedCodes::from_dataset(dataset, splits, jobs)?),
            false => None,
        };
        let vocabulary = match (from_file, &fitted) {
            (false, Some(fitted)) => Vocabulary::from_codes(fitted.codes.keys())?,
            _ => dataset.vocabulary()?.clone(),
        };
        let codes: Vec<Arc<str>> = vocabulary.iter().map(|(code, _)| code.into()).collect();
        let rows = old.find_rows(&codes)?;
        let old = OldCodes { table: old.take_rows(&rows)?, path: old.path };
        let scales = match options.normalize {
            Normalize::No => None,
            Normalize::ByFile => Some(CodeScales::from_codes(&old)?),
            Normalize::Compatible | Normalize::Exact => {
                let exact = options.normalize == Normalize::Exact;
                Some(CodeScales::new(&old, fitted.as_ref(), &codes, exact)?)
            }
        };
        let entry = |i: usize, token: u32| {
            let known = scales.as_ref().and_then(|s| Some((s.mean[i]?, s.std[i]?)));
            let (mean, std) = known.unwrap_or((f64::NAN, f64::NAN));
            CodeEntry { token, mean, std, scaled: known.is_some() }
        };
        let tokens: Vec<u32> = vocabulary.iter().map(|(_, token)| token).collect();
        let by_code =
            codes.iter().zip(&tokens).enumerate().map(|(i, (c, t))| (Arc::clone(c), entry(i, *t)));
        let token_type = find_narrowest_type(tokens.iter().copied().max().unwrap_or(0).into());
        Ok(Self {
            by_code: by_code.collect(),
            arithmetic: scales.map_or(ValueArithmetic::Raw, |s| s.arithmetic),
            table: build_table(&old, &codes, &tokens, fitted.as_ref(), options.normalize)?,
            token_type,
        })
    }

    pub(super) fn len(&self) -> usize {
        self.by_code.len()
    }

    pub(super) fn get(&self, code: &str) -> Option<CodeEntry> {
        self.by_code.get(code).copied()
    }

    pub(super) fn write(&self, path: &Path) -> Result<()> {
        let file = AtomicFile::create(path, false)?;
        let table = to_stored(&self.table)?;
        let mut writer =
            ArrowWriter::try_new(file, table.schema(), Some(make_writer_properties()))?;
        writer.write(&table)?;
        writer.into_inner()?.commit()
    }
}

struct OldCodes {
    path: std::path::PathBuf,
    table: Option<RecordBatch>,
}

impl OldCodes {
    fn read(path: &Path) -> Result<Self> {
        let mut old = Self { path: path.to_path_buf(), table: None };
        if access::exists(path) {
            let source = MedsFile::open(path)?;
            let schema = source.schema();
            let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
            let table = source.read(&names, None)?;
            if table.column_by_name("code").is_none() {
                return Err(source.make_missing_column_error("code"));
            }
            old.table = Some(table);
        }
        Ok(old)
    }

    fn find_column(&self, name: &str) -> Option<&ArrayRef> {
        self.table.as_ref()?.column_by_name(name)
    }

    fn find_rows(&self, codes: &[Arc<str>]) -> Result<UInt32Array> {
        let Some(column) = self.find_column("code") else {
            return Ok(UInt32Array::new_null(codes.len()));
        };
        let column = cast(column, &DataType::LargeUtf8)?;
        let mut places = HashMap::with_capacity(column.len());
        for (row, code) in (0u32..).zip(column.as_string::<i64>()) {
            if let Some(code) = code {
                places.entry(code).or_insert(row);
            }
        }
        Ok(codes.iter().map(|code| places.get(code.as_ref()).copied()).collect())
    }

    /// Returns rows of the old `codes.parquet` (`None` if absent); a NULL index gives NULLs.
    fn take_rows(&self, rows: &UInt32Array) -> Result<Option<RecordBatch>> {
        let Some(table) = &self.table else { return Ok(None) };
        let columns =
            table.columns().iter().map(|c| Ok(take(c, rows, None)?)).collect::<Result<_>>()?;
        let fields: Vec<Field> = table
            .schema()
            .fields()
            .iter()
            .map(|f| f.as_ref().clone().with_nullable(true))
            .collect();
        let schema = Arc::new(Schema::new(fields));
        Ok(Some(build_record_batch(schema, columns, rows.len())?))
    }

    /// Returns the values of a column of the old file, and whether its type is Float16 or Float32.
    /// Returns `None` if the column is absent, and an error if it is not numeric.
    fn read_numeric_column(&self, name: &str) -> Result<Option<(Vec<Option<f64>>, bool)>> {
        let Some(column) = self.find_column(name) else { return Ok(None) };
        if !column.data_type().is_numeric() && *column.data_type() != DataType::Null {
            return Err(Error::file(
                &self.path,
                format!(
                    "column {name:?}: expected numbers (cast the column in the file), found {}",
                    column.data_type()
                ),
            ));
        }
        let single = matches!(column.data_type(), DataType::Float32 | DataType::Float16);
        let numbers = cast(column, &DataType::Float64)?;
        Ok(Some((numbers.as_primitive::<Float64Type>().iter().collect(), single)))
    }
}

struct CodeScales {
    mean: Vec<Option<f64>>,
    std: Vec<Option<f64>>,
    arithmetic: ValueArithmetic,
}

impl CodeScales {
    /// Reads mean and std, or computes them from counts and sums. Returns an error if the file has
    /// neither.
    fn from_codes(old: &OldCodes) -> Result<Self> {
        let arithmetic = ValueArithmetic::Double;
        if let (Some((mean, _)), Some((std, _))) =
            (old.read_numeric_column(MEAN)?, old.read_numeric_column(STD)?)
        {
            return Ok(Self { mean, std, arithmetic });
        }
        let [_, _, n, sum, sum_sqd] = COUNTED;
        let (Some((n, _)), Some((sum, _)), Some((sum_sqd, _))) = (
            old.read_numeric_column(n)?,
            old.read_numeric_column(sum)?,
            old.read_numeric_column(sum_sqd)?,
        ) else {
            return Err(Error::file(
                &old.path,
                format!(
                    "the file lacks the columns that normalization needs; add the columns {MEAN} and {STD}, or {n}, {sum} and {sum_sqd}"
                ),
            ));
        };
        let parts = || n.iter().zip(&sum).zip(&sum_sqd);
        let mean = parts().map(|((n, s), _)| Some((*s)? / (*n)?)).collect();
        let std =
            parts().map(|((n, s), q)| Some(compute_std_deviation((*n)?, (*s)?, (*q)?))).collect();
        Ok(Self { mean, std, arithmetic })
    }

    /// Reads mean and std of each code, or computes them from `fitted`, the counts of the train
    /// split: in 64 bits if `exact` is true, otherwise as meds-torch-data does.
    fn new(
        old: &OldCodes,
        fitted: Option<&FittedCodes>,
        codes: &[Arc<str>],
        exact: bool,
    ) -> Result<Self> {
        let zero = CodeCounts::default();
        let counts: Vec<&CodeCounts> = codes
            .iter()
            .map(|code| fitted.and_then(|f| f.codes.get(code)).unwrap_or(&zero))
            .collect();
        // `most` is the largest number of values of a code. meds-torch-data stores sums in 32 bits.
        // It divides the sums in 32 bits if all counts fit 16 bits, otherwise in 64 bits.
        let most = fitted.map_or(0, |f| f.codes.values().map(|c| c.values).max().unwrap_or(0));
        let single = !exact && most <= u64::from(u16::MAX);
        let double = fitted.is_some_and(|f| f.double);
        let moments = |c: &CodeCounts| match (exact, single) {
            (true, _) => (
                c.sum / to_f64(c.values),
                compute_std_deviation(to_f64(c.values), c.sum, c.sum_sqd),
            ),
            (false, true) => {
                let (sum, sum_sqd) = compute_stored_sums(c, double);
                let n = to_f32(c.values);
                let mean = sum / n;
                (f64::from(mean), f64::from((sum_sqd / n - mean * mean).sqrt()))
            }
            (false, false) => {
                let (sum, sum_sqd) = compute_stored_sums(c, double);
                let n = to_f64(c.values);
                (f64::from(sum) / n, compute_std_deviation(n, sum.into(), sum_sqd.into()))
            }
        };
        let (mean, mean_single) = match old.read_numeric_column(MEAN)? {
            Some(given) => given,
            None => (counts.iter().map(|c| Some(moments(c).0)).collect(), single),
        };
        let (std, std_single) = match old.read_numeric_column(STD)? {
            Some(given) => given,
            None => (counts.iter().map(|c| Some(moments(c).1)).collect(), single),
        };
        let arithmetic = match mean_single && std_single && !exact {
            true => ValueArithmetic::Single,
            false => ValueArithmetic::Double,
        };
        Ok(Self { mean, std, arithmetic })
    }
}

/// Returns sums of values and of squares: rounded from 64 bits if `double`, else added in 32 bits.
#[expect(clippy::cast_possible_truncation, reason = "meds-torch-data stores 32 bits")]
fn compute_stored_sums(c: &CodeCounts, double: bool) -> (f32, f32) {
    if double { (c.sum as f32, c.sum_sqd as f32) } else { (c.single_sum, c.single_sum_sqd) }
}

fn compute_std_deviation(n: f64, sum: f64, sum_sqd: f64) -> f64 {
    let mean = sum / n;
    (sum_sqd / n - mean * mean).sqrt()
}

#[expect(clippy::cast_precision_loss, reason = "counts are below 2^53")]
fn to_f64(n: u64) -> f64 {
    n as f64
}

#[expect(clippy::cast_precision_loss, reason = "counts are below 2^16 here")]
fn to_f32(n: u64) -> f32 {
    n as f32
}

fn find_narrowest_type(most: u64) -> DataType {
    match most {
        0..=0xff => DataType::UInt8,
        0x100..=0xffff => DataType::UInt16,
        0x1_0000..=0xffff_ffff => DataType::UInt32,
        _ => DataType::UInt64,
    }
}

fn narrow_array(values: impl Iterator<Item = u64>) -> Result<ArrayRef> {
    let values: UInt64Array = values.collect();
    let most = values.values().iter().copied().max().unwrap_or(0);
    Ok(cast(&values, &find_narrowest_type(most))?)
}

/// Builds the table of the new `codes.parquet`: codes, counts, columns of the old file, and tokens.
fn build_table(
    old: &OldCodes,
    codes: &[Arc<str>],
    tokens: &[u32],
    fitted: Option<&FittedCodes>,
    normalize: Normalize,
) -> Result<RecordBatch> {
    let code: LargeStringArray = codes.iter().map(|c| Some(c.as_ref())).collect();
    let mut columns: Vec<(String, ArrayRef)> = vec![("code".into(), Arc::new(code))];
    if let Some(fitted) = fitted {
        let zero = CodeCounts::default();
        let counts: Vec<&CodeCounts> =
            codes.iter().map(|code| fitted.codes.get(code).unwrap_or(&zero)).collect();
        let sums: [ArrayRef; 2] = if normalize == Normalize::Exact {
            let sum: Float64Array = counts.iter().map(|c| Some(c.sum)).collect();
            let sum_sqd: Float64Array = counts.iter().map(|c| Some(c.sum_sqd)).collect();
            [Arc::new(sum), Arc::new(sum_sqd)]
        } else {
            let stored = |c: &&CodeCounts| compute_stored_sums(c, fitted.double);
            let sum: Float32Array = counts.iter().map(|c| Some(stored(c).0)).collect();
            let sum_sqd: Float32Array = counts.iter().map(|c| Some(stored(c).1)).collect();
            [Arc::new(sum), Arc::new(sum_sqd)]
        };
        let [sum, sum_sqd] = sums;
        let values = [
            narrow_array(counts.iter().map(|c| c.rows))?,
            narrow_array(counts.iter().map(|c| c.subjects))?,
            narrow_array(counts.iter().map(|c| c.values))?,
            sum,
            sum_sqd,
        ];
        columns.extend(COUNTED.iter().map(ToString::to_string).zip(values));
    }
    let index = narrow_array(tokens.iter().map(|t| u64::from(*t)))?;
    if let Some(table) = &old.table {
        for (field, column) in table.schema().fields().iter().zip(table.columns()) {
            let name = field.name();
            if columns.iter().any(|(n, _)| n == name) {
                continue;
            }
            let column = if name == INDEX { &index } else { column };
            columns.push((name.clone(), Arc::clone(column)));
        }
    }
    if !columns.iter().any(|(name, _)| name == INDEX) {
        columns.push((INDEX.into(), index));
    }
    Ok(RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, c)| (n, c, true)))?)
}
