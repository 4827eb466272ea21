//! Random tables whose columns have the same names in all tables.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Date32Array, Decimal128Array, DurationMicrosecondArray,
    Float64Array, Int64Array, LargeListArray, ListArray, RecordBatch, StringArray, StructArray,
    TimestampMicrosecondArray, UInt64Array,
};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, DurationMicrosecondType, Field, Fields, Float64Type, Int64Type, Schema,
    TimestampMicrosecondType,
};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serrate::datafusion;

use crate::expressions::{Expr, Leaf, Shape, Type};

/// A set of random tables over which statements run.
#[derive(Clone, Debug)]
pub struct World {
    pub seed: u64,
    pub tables: Vec<Table>,
    /// Whether the tables have only values that `.nrt` can hold: numbers without NULL.
    pub plain: bool,
    /// The time zone of our sessions.
    pub zone: &'static str,
}

#[derive(Clone, Debug)]
pub struct Table {
    pub name: String,
    pub rows: RecordBatch,
    pub columns: Vec<Column>,
}

/// A column of a table, with what the generator of statements knows about it.
#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    pub ty: Type,
    pub shape: Shape,
    /// Whether calls fail for some values of the column. Only statements that exclude these values
    /// use it.
    pub trap: bool,
}

impl Column {
    /// Returns an expression for the column of the relation with the name `alias`.
    pub fn of(&self, alias: &str) -> Expr {
        let shape = self.shape.as_ref().map(|s| format!("{alias}:{s}"));
        Expr::column(format!("{alias}.{}", self.name), self.ty, shape)
    }
}

impl World {
    /// Creates one to three tables of at most `rows` rows.
    pub fn new(seed: u64, rows: usize) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let plain = random.random_range(0..4) == 0;
        let n = random.random_range(1..=3);
        let tables =
            (0..n).map(|i| draw_table(&mut random, &format!("t{i}"), rows, plain)).collect();
        Self { seed, tables, plain, zone: "UTC" }
    }

    /// Creates one to three tables with extreme values and more types than those of [`Self::new`],
    /// for the generator [`crate::queries`].
    pub fn wide(seed: u64, rows: usize) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed ^ 0x71de);
        let plain = random.random_range(0..4) == 0;
        let n = random.random_range(1..=3);
        let tables =
            (0..n).map(|i| wide_table(&mut random, &format!("t{i}"), rows, plain)).collect();
        let zone = ["UTC", "UTC", ZONE, "America/New_York"][random.random_range(0..4)];
        Self { seed, tables, plain, zone }
    }
}

/// The time zone of all columns of timestamps with a time zone. It has clock changes.
pub const ZONE: &str = "Europe/Berlin";

const KEYS: [DataType; 6] = [
    DataType::Int8,
    DataType::Int16,
    DataType::Int32,
    DataType::Int64,
    DataType::UInt8,
    DataType::UInt32,
];
const ELEMENTS: [DataType; 4] =
    [DataType::Int16, DataType::Int32, DataType::Int64, DataType::Int64];
const TEXTS: [&str; 8] = ["p", "q", "", "P", "LAB//HbA1c", "DX//E11.9", "pq", "12"];
const FLOATS: [f64; 9] = [0.0, -0.0, 1.5, -2.25, 0.1, 3.0, f64::NAN, 0.30000000000000004, 1e300];

struct Maker<'a> {
    random: &'a mut ChaCha8Rng,
    /// Percentage of NULL in each third of the rows, so that three files of a table differ in it.
    nulls: [u32; 3],
    plain: bool,
    /// Whether all lists that are not NULL have the same length.
    even: bool,
}

impl Maker<'_> {
    /// Draws whether value `i` of `n` values is NULL.
    fn null(&mut self, i: usize, n: usize) -> bool {
        self.random.random_range(0..100) < self.nulls[3 * i / n.max(1)]
    }

    fn values(&mut self, leaf: Leaf, n: usize) -> ArrayRef {
        match leaf {
            Leaf::Int => Arc::new(Int64Array::from_iter(
                (0..n).map(|i| (!self.null(i, n)).then(|| self.random.random_range(-3..7))),
            )),
            Leaf::Float => {
                let of: &[f64] = if self.plain { &FLOATS[..6] } else { &FLOATS };
                Arc::new(Float64Array::from_iter((0..n).map(|i| {
                    (!self.null(i, n)).then(|| of[self.random.random_range(0..of.len())])
                })))
            }
            Leaf::Bool => Arc::new(BooleanArray::from_iter(
                (0..n).map(|i| (!self.null(i, n)).then(|| self.random.random_range(0..2) == 0)),
            )),
            Leaf::Text => Arc::new(StringArray::from_iter((0..n).map(|i| {
                (!self.null(i, n)).then(|| TEXTS[self.random.random_range(0..TEXTS.len())])
            }))),
            Leaf::Time => {
                let day = 86_400_000_000_i64;
                Arc::new(TimestampMicrosecondArray::from_iter((0..n).map(|i| {
                    (!self.null(i, n))
                        .then(|| 18_000 * day + self.random.random_range(0..6_i64) * day / 2)
                })))
            }
        }
    }

    /// Draws the lengths of `n` lists, and which of them are NULL.
    fn lists(&mut self, n: usize) -> (Vec<usize>, Option<NullBuffer>) {
        let mut valid = Vec::with_capacity(n);
        let mut lengths = Vec::with_capacity(n);
        for i in 0..n {
            let null = self.null(i, n);
            valid.push(!null);
            lengths.push(match (null, self.even) {
                (true, _) => 0,
                (false, true) => 2,
                (false, false) => [0, 1, 1, 2, 3, 5][self.random.random_range(0..6)],
            });
        }
        let nulls = (!self.plain).then(|| NullBuffer::from(valid));
        (lengths, nulls)
    }
}

fn wrap_lists(
    lengths: &[usize],
    nulls: Option<&NullBuffer>,
    inner: ArrayRef,
    large: bool,
) -> ArrayRef {
    let item = Arc::new(Field::new_list_field(inner.data_type().clone(), true));
    let lengths = lengths.iter().copied();
    if large {
        let offsets = OffsetBuffer::<i64>::from_lengths(lengths);
        Arc::new(LargeListArray::new(item, offsets, inner, nulls.cloned()))
    } else {
        let offsets = OffsetBuffer::<i32>::from_lengths(lengths);
        Arc::new(ListArray::new(item, offsets, inner, nulls.cloned()))
    }
}

fn draw_nulls(random: &mut ChaCha8Rng, plain: bool) -> [u32; 3] {
    if plain {
        return [0; 3];
    }
    let all = [0, 15, 15, 40][random.random_range(0..4)];
    match random.random_range(0..3) {
        0 => [0; 3].map(|_| [0, 15, 40, 100][random.random_range(0..4)]),
        _ => [all; 3],
    }
}

fn draw_table(random: &mut ChaCha8Rng, name: &str, rows: usize, plain: bool) -> Table {
    let n = [0, 1, rows / 2, rows, rows, rows, rows, rows][random.random_range(0..8)];
    let nulls = draw_nulls(random, plain);
    let large = !plain && random.random_range(0..4) == 0;
    let shuffled = random.random_range(0..3) == 0;
    let key = KEYS[random.random_range(0..KEYS.len())].clone();
    let element = ELEMENTS[random.random_range(0..ELEMENTS.len())].clone();
    let even = random.random_range(0..8) == 0;
    let mut maker = Maker { random, nulls, plain, even };
    let mut ids: Vec<i64> = (0..n as i64).collect();
    if shuffled {
        for i in (1..n).rev() {
            ids.swap(i, maker.random.random_range(0..=i));
        }
    }
    let mut columns: Vec<(&str, Type, Shape, ArrayRef)> = Vec::new();
    let one = |leaf| Type::new(0, leaf);
    columns.push(("id", one(Leaf::Int), None, Arc::new(Int64Array::from(ids))));
    // Keys are small and not negative, and they repeat.
    let k = Int64Array::from_iter(
        (0..n).map(|i| (!maker.null(i, n)).then(|| maker.random.random_range(0..5))),
    );
    columns.push(("k", one(Leaf::Int), None, cast(&k, &key).unwrap()));
    columns.push(("v", one(Leaf::Int), None, maker.values(Leaf::Int, n)));
    // ORDER BY distinguishes -0.0 from 0.0, but the dynamic filters of a sort with LIMIT do not. So
    // columns of floats have only 0.0.
    let f = maker.values(Leaf::Float, n);
    let f = f.as_primitive::<Float64Type>().unary::<_, Float64Type>(|v| v + 0.0);
    columns.push(("f", one(Leaf::Float), None, Arc::new(f)));
    columns.push(("flag", one(Leaf::Bool), None, maker.values(Leaf::Bool, n)));
    if !plain {
        columns.push(("s", one(Leaf::Text), None, maker.values(Leaf::Text, n)));
        columns.push(("t", one(Leaf::Time), None, maker.values(Leaf::Time, n)));
    }
    // Columns of lists with equal lengths, and of lists in these lists.
    let (lengths, valid) = maker.lists(n);
    let total: usize = lengths.iter().sum();
    let shape = || Some("1".to_string());
    for (name, leaf) in [
        ("x", Leaf::Int),
        ("y", Leaf::Int),
        ("fx", Leaf::Float),
        ("bx", Leaf::Bool),
        ("sx", Leaf::Text),
        ("tx", Leaf::Time),
    ] {
        if plain && matches!(leaf, Leaf::Text | Leaf::Time) {
            continue;
        }
        let mut values = maker.values(leaf, total);
        if leaf == Leaf::Int {
            values = cast(&values, &element).unwrap();
        }
        let lists = wrap_lists(&lengths, valid.as_ref(), values, large);
        columns.push((name, Type::new(1, leaf), shape(), lists));
    }
    let (inner, inner_valid) = maker.lists(total);
    let leaves: usize = inner.iter().sum();
    for (name, leaf) in
        [("xx", Leaf::Int), ("ff", Leaf::Float), ("bb", Leaf::Bool), ("ss", Leaf::Text)]
    {
        if plain && leaf == Leaf::Text {
            continue;
        }
        let values = maker.values(leaf, leaves);
        let lists = wrap_lists(&inner, inner_valid.as_ref(), values, large);
        let lists = wrap_lists(&lengths, valid.as_ref(), lists, large);
        columns.push((name, Type::new(2, leaf), Some("1/2".into()), lists));
    }
    if !plain {
        // A column of lists with other lengths.
        let (lengths, valid) = maker.lists(n);
        let values = maker.values(Leaf::Int, lengths.iter().sum());
        let lists = wrap_lists(&lengths, valid.as_ref(), values, false);
        columns.push(("w", Type::new(1, Leaf::Int), Some("w".into()), lists));
        // In rows whose `id` is a multiple of 4, the sum of `big` overflows, and the list `one`
        // does not have exactly one element.
        let id = columns[0].3.clone();
        let id = id.as_primitive::<Int64Type>().values();
        let lengths: Vec<usize> = id.iter().map(|i| if i % 4 == 0 { 2 } else { 1 }).collect();
        let big = id.iter().flat_map(|i| if i % 4 == 0 { vec![i64::MAX, 1] } else { vec![*i] });
        let big: ArrayRef = Arc::new(Int64Array::from_iter_values(big));
        columns.push((
            "big",
            Type::new(1, Leaf::Int),
            None,
            wrap_lists(&lengths, None, big, false),
        ));
        let one: ArrayRef =
            Arc::new(Int64Array::from_iter_values(0..lengths.iter().sum::<usize>() as i64));
        let inner = wrap_lists(&lengths, None, one, false);
        columns.push((
            "one",
            Type::new(2, Leaf::Int),
            None,
            wrap_lists(&vec![1; n], None, inner, false),
        ));
    }
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, _, _, array)| {
            Field::new(*name, array.data_type().clone(), *name != "id" && !plain)
        })
        .collect();
    let known = columns
        .iter()
        .map(|(name, ty, shape, _)| Column {
            name: (*name).into(),
            ty: *ty,
            shape: shape.clone(),
            trap: matches!(*name, "big" | "one"),
        })
        .collect();
    let arrays = columns.into_iter().map(|(_, _, _, array)| array).collect();
    let rows = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap();
    Table { name: name.into(), rows, columns: known }
}

/// Creates a table for [`World::wide`]. The name of a column determines its type.
fn wide_table(random: &mut ChaCha8Rng, name: &str, rows: usize, plain: bool) -> Table {
    let n = [0, 1, rows / 2, rows / 2, rows, rows][random.random_range(0..6)];
    let nulls = draw_nulls(random, plain);
    let mut ids: Vec<i64> = (0..n as i64).collect();
    if random.random_range(0..3) == 0 {
        for i in (1..n).rev() {
            ids.swap(i, random.random_range(0..=i));
        }
    }
    let mut columns: Vec<(&str, ArrayRef)> = vec![("id", Arc::new(Int64Array::from(ids)))];
    let even = random.random_range(0..6) == 0;
    let mut maker = Maker { random, nulls, plain, even };
    columns.push(("k", cast(&maker.wide("k", n), &DataType::Int32).unwrap()));
    let single: &[&str] = if plain {
        &["v", "f", "b"]
    } else {
        &["v", "z", "u", "f", "s", "b", "d", "t", "tz", "g", "n"]
    };
    columns.extend(single.iter().map(|of| (*of, maker.wide(of, n))));
    let lists: &[(&str, &str)] = if plain {
        &[("li", "v"), ("lf", "f")]
    } else {
        &[("li", "v"), ("lf", "f"), ("ls", "s"), ("ld", "d"), ("ltz", "tz"), ("lg", "g")]
    };
    let (lengths, valid) = maker.lists(n);
    let total: usize = lengths.iter().sum();
    for (name, of) in lists {
        let values = maker.wide(of, total);
        columns.push((name, wrap_lists(&lengths, valid.as_ref(), values, false)));
    }
    let (inner, inner_valid) = maker.lists(total);
    let values = maker.wide("v", inner.iter().sum());
    let values = wrap_lists(&inner, inner_valid.as_ref(), values, false);
    columns.push(("ll", wrap_lists(&lengths, valid.as_ref(), values, false)));
    if !plain {
        // This column must be the last one, because `Queries` has its fields `st.a`, `st.s` and
        // `st.l` in its place.
        columns.push(("st", Arc::new(maker.structs(n))));
    }
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, array)| Field::new(*name, array.data_type().clone(), *name != "id" && !plain))
        .collect();
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    let rows = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap();
    Table { name: name.into(), rows, columns: Vec::new() }
}

impl Maker<'_> {
    /// Draws structs of an integer, a string and a list. Structs that are NULL have values in their
    /// fields. In some tables, no field is NULL.
    fn structs(&mut self, n: usize) -> StructArray {
        let nulls = self.nulls;
        let valid: Vec<bool> = (0..n).map(|i| !self.null(i, n)).collect();
        if self.random.random_range(0..2) == 0 {
            self.nulls = [0; 3];
        }
        let (a, s) = (self.wide("v", n), self.wide("s", n));
        let (lengths, lists) = self.lists(n);
        let elements = self.wide("v", lengths.iter().sum());
        let l = wrap_lists(&lengths, lists.as_ref(), elements, false);
        self.nulls = nulls;
        let columns = vec![a, s, l];
        let fields: Fields = ["a", "s", "l"]
            .into_iter()
            .zip(&columns)
            .map(|(name, column)| Field::new(name, column.data_type().clone(), true))
            .collect();
        StructArray::new(fields, columns, Some(NullBuffer::from(valid)))
    }

    fn choose<T: Copy>(&mut self, of: &[T], n: usize) -> Vec<Option<T>> {
        (0..n)
            .map(|i| (!self.null(i, n)).then(|| of[self.random.random_range(0..of.len())]))
            .collect()
    }

    /// Draws values for the column `of` of [`World::wide`].
    fn wide(&mut self, of: &str, n: usize) -> ArrayRef {
        const DAY: i64 = 86_400_000_000;
        // 1600-01-01, days around 1970-01-01 and 2020-02-29, and 2999-12-31.
        const DAYS: [i32; 7] = [-135_140, -1, 0, 18_320, 18_321, 18_321, 376_199];
        // The days 2020-03-29 and 2020-10-25. On them, the clocks of `ZONE` skip and repeat the
        // hour after 02:00.
        const CHANGES: [i64; 2] = [18_350 * DAY, 18_560 * DAY];
        const HOUR: i64 = DAY / 24;
        match of {
            "k" => Arc::new(Int64Array::from(self.choose(&[0, 1, 1, 2, 3, 4], n))),
            "v" => Arc::new(Int64Array::from(self.choose(&[-9, -1, 0, 0, 1, 2, 3, 7, 10], n))),
            "z" => Arc::new(Int64Array::from(vec![None; n])),
            "u" => Arc::new(UInt64Array::from(self.choose(&[0, 1, 1, 7, 1 << 63, u64::MAX], n))),
            "f" => {
                let all = [
                    0.0,
                    -0.0,
                    0.5,
                    1.0,
                    -1.5,
                    3.0,
                    f64::NAN,
                    -f64::NAN,
                    f64::INFINITY,
                    f64::NEG_INFINITY,
                ];
                let of = if self.plain { &all[..6] } else { &all };
                Arc::new(Float64Array::from(self.choose(of, n)))
            }
            "s" => {
                let of = ["a", "b", "ab", "", "A", "it's", "äß", "\"q\"", "%", "a b", "12", "7"];
                Arc::new(StringArray::from(self.choose(&of, n)))
            }
            "b" => Arc::new(BooleanArray::from(self.choose(&[true, false], n))),
            "d" => Arc::new(Date32Array::from(self.choose(&DAYS, n))),
            "t" => {
                let of: Vec<i64> = DAYS
                    .iter()
                    .flat_map(|d| [i64::from(*d) * DAY, i64::from(*d) * DAY + DAY / 2 + 1])
                    .chain(CHANGES.map(|day| day + 2 * HOUR + HOUR / 2))
                    .collect();
                Arc::new(TimestampMicrosecondArray::from(self.choose(&of, n)))
            }
            "tz" => {
                // Midnight of winter days, the extremes of the years, and times every half hour
                // around the clock changes.
                let mut of: Vec<i64> =
                    DAYS[1..6].iter().map(|d| i64::from(*d) * DAY - HOUR).collect();
                of.extend([DAYS[0], DAYS[6]].map(|d| i64::from(d) * DAY));
                for day in CHANGES {
                    of.extend([1, 2, 3].map(|halves| day + halves * HOUR / 2));
                }
                let instants = TimestampMicrosecondArray::from(self.choose(&of, n));
                Arc::new(instants.with_timezone(ZONE))
            }
            "g" => {
                let of = [0, 1, -1, DAY, DAY, 30 * DAY, -400 * DAY];
                Arc::new(DurationMicrosecondArray::from(self.choose(&of, n)))
            }
            _ => {
                let values = Decimal128Array::from(self.choose(&[0, 150, 150, -25, 300, 1010], n));
                Arc::new(values.with_precision_and_scale(12, 2).unwrap())
            }
        }
    }
}

/// Returns a CREATE TABLE statement with the rows of a table and those columns whose names occur in
/// `text`.
pub fn create(table: &Table, text: &str) -> String {
    let schema = table.rows.schema();
    let named: Vec<usize> = (0..schema.fields().len())
        .filter(|i| {
            let name = schema.field(*i).name();
            let mut words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            name == "id" || words.any(|w| w == name)
        })
        .collect();
    let rows = &table.rows.project(&named).unwrap();
    let schema = rows.schema();
    let cells = |row: usize| -> String {
        let cells: Vec<_> = rows.columns().iter().map(|c| literal(c, row)).collect();
        format!("({})", cells.join(", "))
    };
    let casts: Vec<_> = schema
        .fields()
        .iter()
        .enumerate()
        .map(|(i, f)| format!("arrow_cast(column{}, '{}') AS {}", i + 1, f.data_type(), f.name()))
        .collect();
    let (values, filter) = match rows.num_rows() {
        0 => {
            let nulls = vec!["NULL"; rows.num_columns()];
            (format!("({})", nulls.join(", ")), " WHERE false")
        }
        n => ((0..n).map(cells).collect::<Vec<_>>().join(",\n  "), ""),
    };
    format!(
        "CREATE TABLE {} AS SELECT {}\nFROM (VALUES\n  {values}){filter};\n",
        table.name,
        casts.join(", ")
    )
}

/// Returns a value as an SQL literal.
fn literal(array: &ArrayRef, row: usize) -> String {
    if array.is_null(row) {
        return "NULL".into();
    }
    let elements = |inner: ArrayRef| {
        let values: Vec<_> = (0..inner.len()).map(|i| literal(&inner, i)).collect();
        format!("[{}]", values.join(", "))
    };
    match array.data_type() {
        DataType::List(_) => elements(array.as_list::<i32>().value(row)),
        DataType::LargeList(_) => elements(array.as_list::<i64>().value(row)),
        DataType::Struct(_) => {
            let structs = array.as_struct();
            let fields = structs.column_names().into_iter().zip(structs.columns());
            let fields = fields.map(|(name, c)| format!("'{name}': {}", literal(c, row)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        DataType::Float64 => {
            let value = array.as_primitive::<Float64Type>().value(row);
            if value.is_finite() && !(value == 0.0 && value.is_sign_negative()) {
                format!("{value:?}")
            } else {
                format!("'{value:?}'::double")
            }
        }
        DataType::Utf8 => format!("'{}'", array.as_string::<i32>().value(row).replace('\'', "''")),
        DataType::Date32 => {
            let format = ArrayFormatter::try_new(array, &FormatOptions::default()).unwrap();
            format!("DATE '{}'", format.value(row))
        }
        DataType::Duration(_) => {
            let value = array.as_primitive::<DurationMicrosecondType>().value(row);
            format!("arrow_cast({value}, 'Duration(Microsecond)')")
        }
        DataType::Decimal128(..) => {
            let format = ArrayFormatter::try_new(array, &FormatOptions::default()).unwrap();
            format!("'{}'", format.value(row))
        }
        DataType::Timestamp(_, None) => {
            let format = ArrayFormatter::try_new(array, &FormatOptions::default()).unwrap();
            format!("TIMESTAMP '{}'", format.value(row))
        }
        zoned @ DataType::Timestamp(_, Some(_)) => {
            let value = array.as_primitive::<TimestampMicrosecondType>().value(row);
            format!("arrow_cast({value}, '{zoned}')")
        }
        _ => {
            let format = ArrayFormatter::try_new(array, &FormatOptions::default()).unwrap();
            format.value(row).to_string()
        }
    }
}
