//! Files as other programs write them: rows of a table with other Arrow types, statistics and page
//! formats than ours.

use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, DictionaryArray, FixedSizeListArray, Int32Array, LargeListArray,
    ListArray, RecordBatch, StringArray, StructArray, UInt64Array,
};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use datafusion::arrow::compute::{cast, take};
use datafusion::arrow::datatypes::{DataType, Field, Fields, Int32Type, Schema};
use datafusion::arrow::ipc::writer::FileWriter;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::arrow::arrow_writer::ArrowWriterOptions;
use datafusion::parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use datafusion::parquet::schema::types::ColumnPath;
use rand_chacha::ChaCha8Rng;
use serrate::datafusion;

use crate::cuts::{Deck, Source};
use crate::null_counts::remove_null_counts;
use crate::sources::split_rows;
use crate::tables::Table;

/// The statistics that a Parquet file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bounds {
    /// Row groups and pages have statistics.
    Pages,
    /// Only row groups have statistics.
    Groups,
    /// Minima and maxima of strings are truncated to one byte.
    Short,
    /// Statistics have minima and maxima, but no null counts.
    Uncounted,
    /// Every second column has no statistics.
    Partial,
    Absent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Texts {
    Plain,
    Large,
    View,
    /// Strings are dictionary-encoded, with a value that no row uses; in Arrow files, the
    /// dictionary may contain NULL.
    Dictionary,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lists {
    Small,
    Large,
    /// Lists that all have the same length become FixedSizeList.
    Even,
}

/// The properties of the files that another program writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Foreign {
    pub bounds: Bounds,
    /// The name of the field of list elements in the schema.
    pub element: &'static str,
    /// Whether fields without NULL are declared as required.
    pub required: bool,
    pub texts: Texts,
    pub lists: Lists,
    /// Whether Parquet files have data pages of version 2.
    pub second_pages: bool,
    /// Whether Parquet files have dictionary pages.
    pub dictionary: bool,
    /// Whether Parquet files have Bloom filters.
    pub bloom: bool,
    /// Number of rows per row group.
    pub group: usize,
    /// Whether Parquet files store the Arrow schema in their metadata.
    pub arrow_schema: bool,
    /// Whether CREATE EXTERNAL TABLE declares the types of the columns.
    pub declared: bool,
}

impl Foreign {
    /// Files that differ from ours only in the name of the field of list elements.
    const PLAIN: Self = Self {
        bounds: Bounds::Pages,
        element: "element",
        required: false,
        texts: Texts::Plain,
        lists: Lists::Small,
        second_pages: false,
        dictionary: true,
        bloom: false,
        group: 5,
        arrow_schema: true,
        declared: false,
    };

    /// Returns [`Self::PLAIN`], and files that differ from it in one property each.
    pub fn variants() -> Vec<Self> {
        let mut out = vec![Self::PLAIN];
        for bounds in BOUNDS {
            out.push(Self { bounds, ..Self::PLAIN });
        }
        for element in ELEMENTS {
            out.push(Self { element, ..Self::PLAIN });
        }
        for texts in TEXTS {
            out.push(Self { texts, ..Self::PLAIN });
        }
        for lists in LISTS {
            out.push(Self { lists, ..Self::PLAIN });
        }
        out.push(Self { required: true, ..Self::PLAIN });
        out.push(Self { second_pages: true, ..Self::PLAIN });
        out.push(Self { dictionary: false, ..Self::PLAIN });
        out.push(Self { bloom: true, ..Self::PLAIN });
        out.push(Self { group: 1000, ..Self::PLAIN });
        out.push(Self { arrow_schema: false, ..Self::PLAIN });
        out.push(Self { declared: true, ..Self::PLAIN });
        out
    }

    /// Returns copies of which each has one property from [`Self::PLAIN`].
    pub fn plainer(self) -> Vec<Self> {
        let plain = Self::PLAIN;
        let all = [
            Self { bounds: plain.bounds, ..self },
            Self { element: plain.element, ..self },
            Self { required: plain.required, ..self },
            Self { texts: plain.texts, ..self },
            Self { lists: plain.lists, ..self },
            Self { second_pages: plain.second_pages, ..self },
            Self { dictionary: plain.dictionary, ..self },
            Self { bloom: plain.bloom, ..self },
            Self { group: plain.group, ..self },
            Self { arrow_schema: plain.arrow_schema, ..self },
            Self { declared: plain.declared, ..self },
        ];
        all.into_iter().filter(|other| *other != self).collect()
    }

    /// Returns a label for each property that affects files of this source, so that a run can count
    /// how often it was used.
    pub fn kinds(&self, source: Source) -> Vec<String> {
        let mut out = vec![
            format!("element {}", self.element),
            format!("required {}", self.required),
            format!("texts {:?}", self.texts),
            format!("lists {:?}", self.lists),
            format!("declared {}", self.declared),
        ];
        if source == Source::Parquet {
            out.push(format!("bounds {:?}", self.bounds));
            out.push(format!("second_pages {}", self.second_pages));
            out.push(format!("dictionary {}", self.dictionary));
            out.push(format!("bloom {}", self.bloom));
            out.push(format!("group {}", self.group));
            out.push(format!("arrow_schema {}", self.arrow_schema));
        }
        out
    }

    /// Returns the properties as one word, which serves as the name of a folder.
    pub fn code(&self) -> String {
        format!("{self:?}").chars().filter(char::is_ascii_alphanumeric).collect()
    }

    /// Returns the column definitions for CREATE EXTERNAL TABLE, or an empty string if the types
    /// are read from the files.
    pub fn declared_columns(&self, table: &Table) -> String {
        // Plain DataFusion, which is the reference of some statements, refuses some calls with
        // these types.
        let is_refused = self.texts == Texts::Dictionary || self.lists == Lists::Even;
        let schema = table.rows.schema();
        let types: Option<Vec<String>> = schema
            .fields()
            .iter()
            .map(|f| Some(format!("\"{}\" {}", f.name(), sql_type(f.data_type())?)))
            .collect();
        match types {
            Some(types) if self.declared || is_refused => format!(" ({})", types.join(", ")),
            _ => String::new(),
        }
    }
}

const BOUNDS: [Bounds; 6] = [
    Bounds::Pages,
    Bounds::Groups,
    Bounds::Short,
    Bounds::Uncounted,
    Bounds::Partial,
    Bounds::Absent,
];
const ELEMENTS: [&str; 3] = ["element", "item", "array"];
const TEXTS: [Texts; 4] = [Texts::Plain, Texts::Large, Texts::View, Texts::Dictionary];
const LISTS: [Lists; 3] = [Lists::Small, Lists::Large, Lists::Even];

/// Number of cuts that use the files of one program.
const CUTS: usize = 3;

/// Deals properties of files so that each value of each property occurs equally often.
pub struct Writers {
    /// The properties that were dealt last, and the number of further cuts that use them.
    last: Option<(Foreign, usize)>,
    bounds: Deck<Bounds>,
    elements: Deck<&'static str>,
    texts: Deck<Texts>,
    lists: Deck<Lists>,
    groups: Deck<usize>,
    /// Decks for the six properties that are booleans, in the order of [`Foreign`].
    switches: [Deck<bool>; 6],
}

impl Writers {
    pub fn new() -> Self {
        let switch = || Deck::new(vec![true, false]);
        Self {
            last: None,
            bounds: Deck::new(BOUNDS.to_vec()),
            elements: Deck::new(ELEMENTS.to_vec()),
            texts: Deck::new(TEXTS.to_vec()),
            lists: Deck::new(LISTS.to_vec()),
            groups: Deck::new(vec![2, 5, 1000]),
            switches: [switch(), switch(), switch(), switch(), switch(), switch()],
        }
    }

    pub fn deal(&mut self, random: &mut ChaCha8Rng) -> Foreign {
        let (writer, left) = match self.last {
            Some((writer, left)) if left > 0 => (writer, left),
            _ => (self.deal_new(random), CUTS),
        };
        self.last = Some((writer, left - 1));
        writer
    }

    fn deal_new(&mut self, random: &mut ChaCha8Rng) -> Foreign {
        let bounds = self.bounds.deal(random);
        let element = self.elements.deal(random);
        let texts = self.texts.deal(random);
        let lists = self.lists.deal(random);
        let group = self.groups.deal(random);
        let mut drawn = [false; 6];
        for (value, deck) in drawn.iter_mut().zip(&mut self.switches) {
            *value = deck.deal(random);
        }
        let [required, second_pages, dictionary, bloom, arrow_schema, declared] = drawn;
        Foreign {
            bounds,
            element,
            required,
            texts,
            lists,
            second_pages,
            dictionary,
            bloom,
            group,
            arrow_schema,
            declared,
        }
    }
}

/// Returns the SQL name of an Arrow type, or `None` if it has none.
fn sql_type(data_type: &DataType) -> Option<String> {
    Some(match data_type {
        DataType::Boolean => "BOOLEAN".into(),
        DataType::Int8 => "TINYINT".into(),
        DataType::Int16 => "SMALLINT".into(),
        DataType::Int32 => "INT".into(),
        DataType::Int64 => "BIGINT".into(),
        DataType::UInt8 => "TINYINT UNSIGNED".into(),
        DataType::UInt32 => "INT UNSIGNED".into(),
        DataType::Float64 => "DOUBLE".into(),
        DataType::Utf8 => "VARCHAR".into(),
        DataType::Timestamp(_, None) => "TIMESTAMP".into(),
        DataType::List(item) | DataType::LargeList(item) => {
            format!("{}[]", sql_type(item.data_type())?)
        }
        _ => return None,
    })
}

/// Writes the rows of a table to `files` files in a folder, with the names `0.parquet`, `1.parquet`
/// and so on.
pub fn write_files(
    source: Source,
    folder: &Path,
    rows: &RecordBatch,
    files: usize,
    foreign: &Foreign,
) {
    // All rows are converted together, so that all files have the same types.
    let rows = convert_rows(rows, source, foreign);
    for (i, (from, n)) in split_rows(rows.num_rows(), files).into_iter().enumerate() {
        let part = rows.slice(from, n);
        if source == Source::Arrow {
            write_arrow(&folder.join(format!("{i}.arrow")), &part);
        } else {
            write_parquet(&folder.join(format!("{i}.parquet")), &part, foreign);
        }
    }
}

fn write_arrow(path: &Path, rows: &RecordBatch) {
    let file = std::fs::File::create(path).unwrap();
    let mut writer = FileWriter::try_new(file, &rows.schema()).unwrap();
    let half = rows.num_rows() / 2;
    writer.write(&rows.slice(0, half)).unwrap();
    writer.write(&rows.slice(half, rows.num_rows() - half)).unwrap();
    writer.finish().unwrap();
}

fn write_parquet(path: &Path, rows: &RecordBatch, foreign: &Foreign) {
    let schema = rows.schema();
    let version = match foreign.second_pages {
        true => WriterVersion::PARQUET_2_0,
        false => WriterVersion::PARQUET_1_0,
    };
    let mut properties = WriterProperties::builder()
        .set_writer_version(version)
        .set_max_row_group_row_count(Some(foreign.group))
        .set_data_page_row_count_limit(2)
        .set_write_batch_size(2)
        .set_dictionary_enabled(foreign.dictionary);
    if foreign.bloom {
        properties = properties.set_bloom_filter_max_ndv(32);
    }
    properties = match foreign.bounds {
        Bounds::Pages | Bounds::Uncounted => properties,
        Bounds::Groups => properties.set_statistics_enabled(EnabledStatistics::Chunk),
        Bounds::Short => properties
            .set_statistics_truncate_length(Some(1))
            .set_column_index_truncate_length(Some(1)),
        Bounds::Partial => {
            let named = schema.fields().iter().skip(1).step_by(2);
            let paths = named.map(|f| path_of(f, foreign.element));
            paths.fold(properties, |properties, path| {
                properties.set_column_statistics_enabled(path, EnabledStatistics::None)
            })
        }
        Bounds::Absent => properties
            .set_statistics_enabled(EnabledStatistics::None)
            .set_offset_index_disabled(true),
    };
    // Durations and timestamps with a time zone need the Arrow schema. Readers without it would
    // return integers and times in UTC.
    let arrow_schema =
        foreign.arrow_schema || schema.fields().iter().any(|f| needs_schema(f.data_type()));
    let options = ArrowWriterOptions::new()
        .with_properties(properties.build())
        .with_skip_arrow_metadata(!arrow_schema);
    let mut bytes = Vec::new();
    let mut writer =
        ArrowWriter::try_new_with_options(&mut bytes, Arc::clone(&schema), options).unwrap();
    writer.write(rows).unwrap();
    writer.close().unwrap();
    if foreign.bounds == Bounds::Uncounted {
        bytes = remove_null_counts(bytes);
    }
    std::fs::write(path, bytes).unwrap();
}

/// Returns the path of a column in a Parquet file; for a list, the path of its elements.
fn path_of(field: &Field, element: &str) -> ColumnPath {
    let mut parts = vec![field.name().clone()];
    if field.data_type().is_list() {
        parts.extend(["list".to_string(), element.to_string()]);
    }
    ColumnPath::new(parts)
}

/// Returns whether a type is or contains a duration or a timestamp with a time zone, which Parquet
/// cannot represent.
fn needs_schema(data_type: &DataType) -> bool {
    match data_type {
        DataType::Duration(_) | DataType::Timestamp(_, Some(_)) => true,
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            needs_schema(item.data_type())
        }
        DataType::Struct(fields) => fields.iter().any(|f| needs_schema(f.data_type())),
        _ => false,
    }
}

/// Returns the rows with the types that the program `foreign` gives them.
fn convert_rows(rows: &RecordBatch, source: Source, foreign: &Foreign) -> RecordBatch {
    let schema = rows.schema();
    let (fields, columns): (Vec<Field>, Vec<ArrayRef>) = schema
        .fields()
        .iter()
        .zip(rows.columns())
        .map(|(field, column)| {
            let is_text = *column.data_type() == DataType::Utf8;
            let column = match foreign.texts {
                Texts::Large if is_text => cast(column, &DataType::LargeUtf8).unwrap(),
                Texts::View if is_text => cast(column, &DataType::Utf8View).unwrap(),
                Texts::Dictionary if is_text => encode_texts(column, source == Source::Arrow),
                _ => convert_lists(column, foreign),
            };
            (describe_field(field.name(), &column, foreign.required), column)
        })
        .unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

fn describe_field(name: &str, values: &ArrayRef, required: bool) -> Field {
    let nullable = !required || values.logical_null_count() > 0;
    Field::new(name, values.data_type().clone(), nullable)
}

/// Encodes strings with a dictionary in which one value is not used. With `has_null`, the
/// dictionary also has the value NULL: NULL strings in even rows have the key of this value, those
/// in odd rows have a NULL key.
fn encode_texts(texts: &ArrayRef, has_null: bool) -> ArrayRef {
    let texts = texts.as_string::<i32>();
    let mut values: Vec<Option<&str>> = vec![Some("unused")];
    if has_null {
        values.push(None);
    }
    let mut keys: Vec<Option<i32>> = Vec::with_capacity(texts.len());
    for (row, text) in texts.iter().enumerate() {
        let known = values.iter().position(|value| *value == text);
        keys.push(match (text, known) {
            (None, Some(at)) => (row % 2 == 0).then_some(at as i32),
            (None, None) => None,
            (Some(_), Some(at)) => Some(at as i32),
            (Some(_), None) => {
                values.push(text);
                Some(values.len() as i32 - 1)
            }
        });
    }
    let keys = Int32Array::from(keys);
    Arc::new(DictionaryArray::<Int32Type>::new(keys, Arc::new(StringArray::from(values))))
}

/// Returns lists and structs, on all levels, with the types that the program `foreign` gives them.
fn convert_lists(values: &ArrayRef, foreign: &Foreign) -> ArrayRef {
    match values.data_type() {
        DataType::List(_) => {
            let lists = values.as_list::<i32>();
            let offsets: Vec<i64> = lists.value_offsets().iter().map(|o| i64::from(*o)).collect();
            build_lists(&offsets, lists.values(), lists.nulls(), foreign)
        }
        DataType::LargeList(_) => {
            let lists = values.as_list::<i64>();
            build_lists(lists.value_offsets(), lists.values(), lists.nulls(), foreign)
        }
        DataType::Struct(_) => {
            let structs = values.as_struct();
            let (fields, columns): (Vec<Field>, Vec<ArrayRef>) = structs
                .fields()
                .iter()
                .zip(structs.columns())
                .map(|(field, column)| {
                    let column = convert_lists(column, foreign);
                    (describe_field(field.name(), &column, foreign.required), column)
                })
                .unzip();
            Arc::new(StructArray::new(Fields::from(fields), columns, structs.nulls().cloned()))
        }
        _ => Arc::clone(values),
    }
}

fn build_lists(
    offsets: &[i64],
    elements: &ArrayRef,
    nulls: Option<&NullBuffer>,
    foreign: &Foreign,
) -> ArrayRef {
    let elements = convert_lists(elements, foreign);
    if let (Lists::Even, Some(size)) = (foreign.lists, find_even_length(offsets, nulls)) {
        // A NULL list of a fixed size has elements, too; they are copies of the first elements.
        let mut at = Vec::new();
        for (row, bounds) in offsets.windows(2).enumerate() {
            let start = if is_valid(nulls, row) { bounds[0] } else { offsets[0] };
            at.extend((start..start + size).map(|i| i as u64));
        }
        let elements = take(elements.as_ref(), &UInt64Array::from(at), None).unwrap();
        let item = Arc::new(describe_field(foreign.element, &elements, foreign.required));
        return Arc::new(FixedSizeListArray::new(item, size as i32, elements, nulls.cloned()));
    }
    let item = Arc::new(describe_field(foreign.element, &elements, foreign.required));
    match foreign.lists {
        Lists::Large => {
            let offsets: ScalarBuffer<i64> = offsets.iter().copied().collect();
            let offsets = OffsetBuffer::new(offsets);
            Arc::new(LargeListArray::new(item, offsets, elements, nulls.cloned()))
        }
        Lists::Small | Lists::Even => {
            let offsets: ScalarBuffer<i32> = offsets.iter().map(|o| *o as i32).collect();
            let offsets = OffsetBuffer::new(offsets);
            Arc::new(ListArray::new(item, offsets, elements, nulls.cloned()))
        }
    }
}

fn is_valid(nulls: Option<&NullBuffer>, row: usize) -> bool {
    nulls.is_none_or(|nulls| nulls.is_valid(row))
}

/// Returns the length of the lists that are not NULL, or `None` if they differ in length or are
/// empty.
fn find_even_length(offsets: &[i64], nulls: Option<&NullBuffer>) -> Option<i64> {
    let mut lengths = offsets
        .windows(2)
        .enumerate()
        .filter(|(row, _)| is_valid(nulls, *row))
        .map(|(_, bounds)| bounds[1] - bounds[0]);
    let first = lengths.next()?;
    (first > 0 && lengths.all(|length| length == first)).then_some(first)
}
