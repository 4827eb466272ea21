//! Checks that the result of a function for a row depends on that row only. Each scalar function is
//! computed over generated arguments: over a batch, over parts of the batch, over its rows in
//! another order, and over each row alone.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::laws::{list_calls, plan_call, split_arguments};
use super::run;
use datafusion::arrow::array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, LargeListArray, ListArray,
    StringArray, StructArray, UInt64Array, new_null_array,
};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::{CastOptions, can_cast_types, cast_with_options, concat, take};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::common::ScalarValue;
use datafusion::common::config::ConfigOptions;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serrate::datafusion;

/// Number of trials per call. While fewer than `FEW` of them have succeeded, up to `MORE` trials
/// run. The variable SERRATE_TRIALS sets another number of trials.
const TRIALS: usize = 40;
const MORE: usize = 600;
const FEW: usize = 4;
const ROWS: usize = 7;

/// How the columns of one trial are generated. The lists of all its columns have the same lengths,
/// with a few exceptions.
struct Trial {
    seed: u64,
    /// Percentage of lists with one element. `other` is the percentage of lists whose length does
    /// not depend on the other columns.
    single: u64,
    other: u64,
    /// Whether values reach the extremes of their types.
    wild: bool,
    nulls: bool,
}

/// Hashes two numbers, such as the identity of a list and the position of an element in it.
fn mix_bits(a: u64, b: u64) -> u64 {
    let mut z = a.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(b).wrapping_add(1);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn pick_one<T: Copy>(of: &[T], number: u64) -> T {
    of[usize::try_from(number % of.len() as u64).unwrap()]
}

impl Trial {
    fn length(&self, place: u64, depth: usize, rng: &mut ChaCha8Rng) -> usize {
        let long = [0, 1, 1, 2, 2, 3, 3, 4, 5, 8, 9, 17, 33, 70, 150];
        let lengths = if depth == 0 { &long[..] } else { &long[..10] };
        match rng.random_range(0..100) {
            n if n < self.single => 1,
            n if n < self.single + self.other => pick_one(lengths, rng.random()),
            _ => pick_one(lengths, mix_bits(place, self.seed)),
        }
    }

    /// Returns an array of type `t` with one value for each of `places`, which identify positions
    /// in nested lists.
    fn values(&self, t: &DataType, places: &[u64], depth: usize, rng: &mut ChaCha8Rng) -> ArrayRef {
        let null = |rng: &mut ChaCha8Rng| self.nulls && rng.random_range(0..8) == 0;
        match t {
            DataType::List(item) | DataType::LargeList(item) => {
                let (mut below, mut lengths, mut valid) = (Vec::new(), Vec::new(), Vec::new());
                for place in places {
                    let length = self.length(*place, depth, rng);
                    below.extend((0..length as u64).map(|i| mix_bits(*place, i)));
                    lengths.push(length);
                    valid.push(!null(rng));
                }
                let values = self.values(item.data_type(), &below, depth + 1, rng);
                let item = Arc::new(Field::new_list_field(item.data_type().clone(), true));
                let nulls = Some(NullBuffer::from(valid));
                match t {
                    DataType::List(_) => {
                        let offsets = OffsetBuffer::from_lengths(lengths);
                        Arc::new(ListArray::new(item, offsets, values, nulls))
                    }
                    _ => {
                        let offsets = OffsetBuffer::from_lengths(lengths);
                        Arc::new(LargeListArray::new(item, offsets, values, nulls))
                    }
                }
            }
            DataType::Struct(fields) => {
                let columns =
                    fields.iter().map(|f| self.values(f.data_type(), places, depth, rng)).collect();
                let nulls: NullBuffer = places.iter().map(|_| !null(rng)).collect();
                let made = StructArray::try_new_with_length(
                    fields.clone(),
                    columns,
                    Some(nulls),
                    places.len(),
                );
                Arc::new(made.unwrap())
            }
            DataType::Dictionary(keys, values) => {
                // The dictionary also has values that no key refers to.
                let used = self.values(values, places, depth, rng);
                let odd = StringArray::from(vec!["", "zebra", "[", "9223372036854775808"]);
                let odd = cast_with_options(&odd, values, &CastOptions::default()).unwrap();
                let all = concat(&[&odd, &used]).unwrap();
                let places = (4i64..).take(used.len());
                let at = Int64Array::from_iter(places.map(|i| (!null(rng)).then_some(i)));
                let at = cast_with_options(&at, keys, &CastOptions::default()).unwrap();
                datafusion::arrow::array::make_array(
                    at.to_data()
                        .into_builder()
                        .data_type(t.clone())
                        .child_data(vec![all.to_data()])
                        .build()
                        .unwrap(),
                )
            }
            _ => self.flat(t, places.len(), rng),
        }
    }

    fn flat(&self, t: &DataType, len: usize, rng: &mut ChaCha8Rng) -> ArrayRef {
        let there: Vec<bool> =
            (0..len).map(|_| !self.nulls || rng.random_range(0..8) > 0).collect();
        let texts = ["LAB//HbA1c", "DX//E11.9", "1", "-2", "a", "b", "é", "", "[", "x%"];
        let floats =
            [f64::NAN, -f64::NAN, 0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, 1e308, 5e-324];
        let ints = [i64::MAX, i64::MIN, -1, 0, 1 << 53, 127, -128, 255];
        let plain: ArrayRef = match t {
            DataType::Null => return new_null_array(t, len),
            DataType::Boolean => {
                Arc::new(there.iter().map(|v| v.then(|| rng.random())).collect::<BooleanArray>())
            }
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Arc::new(
                there
                    .iter()
                    .map(|v| v.then(|| pick_one(&texts, rng.random())))
                    .collect::<StringArray>(),
            ),
            t if t.is_floating() => {
                let value = |rng: &mut ChaCha8Rng| match rng.random_range(0..4) {
                    0 if self.wild => pick_one(&floats, rng.random()),
                    1 => f64::from(rng.random_range(-3..4i32)),
                    _ => rng.random_range(-1e3..1e3f64),
                };
                Arc::new(there.iter().map(|v| v.then(|| value(rng))).collect::<Float64Array>())
            }
            _ => {
                let value = |rng: &mut ChaCha8Rng| match rng.random_range(0..12) {
                    0 if self.wild => pick_one(&ints, rng.random()),
                    1 if self.wild => rng.random(),
                    _ => rng.random_range(0..4i64),
                };
                Arc::new(there.iter().map(|v| v.then(|| value(rng))).collect::<Int64Array>())
            }
        };
        let through = match t {
            // A value of these types is generated as a value of another type and then cast.
            DataType::Date32 | DataType::Time32(_) => DataType::Int32,
            t if can_cast_types(plain.data_type(), t) => plain.data_type().clone(),
            _ => return new_null_array(t, len),
        };
        let plain = cast_with_options(&plain, &through, &CastOptions::default()).unwrap();
        cast_with_options(&plain, t, &CastOptions::default()).unwrap()
    }
}

/// Returns a type with the same lists around a similar leaf type.
fn vary_type(t: &DataType, rng: &mut ChaCha8Rng) -> DataType {
    let item = |f: &FieldRef, rng: &mut ChaCha8Rng| {
        Arc::new(Field::new_list_field(vary_type(f.data_type(), rng), true))
    };
    use DataType::{
        Boolean, Date32, Dictionary, Duration, Float16, Float32, Float64, Int8, Int32, Int64,
        LargeUtf8, Timestamp, UInt8, UInt32, UInt64, Utf8, Utf8View,
    };
    match t {
        DataType::List(f) | DataType::LargeList(f) if rng.random_range(0..5) == 0 => {
            DataType::LargeList(item(f, rng))
        }
        DataType::List(f) | DataType::LargeList(f) => DataType::List(item(f, rng)),
        DataType::Struct(fields) => DataType::Struct(fields.clone()),
        t if t.is_integer() || t.is_floating() => {
            let own = t.clone();
            let all = [
                own.clone(),
                own.clone(),
                own,
                Float64,
                Float64,
                Float32,
                Float16,
                Int64,
                Int32,
                Int8,
                UInt8,
                UInt32,
                UInt64,
                Boolean,
                Date32,
                Timestamp(TimeUnit::Microsecond, None),
                Duration(TimeUnit::Millisecond),
                DataType::Decimal128(20, 2),
                Utf8,
                DataType::Null,
            ];
            all[rng.random_range(0..all.len())].clone()
        }
        Utf8 => {
            let coded = |keys| Dictionary(Box::new(keys), Box::new(Utf8));
            let all = [Utf8, Utf8, LargeUtf8, Utf8View, coded(Int32), coded(Int64), Int64];
            all[rng.random_range(0..all.len())].clone()
        }
        t => t.clone(),
    }
}

struct Planned<'a> {
    function: &'a ScalarUDF,
    args: Vec<ColumnarValue>,
    fields: Vec<FieldRef>,
    returns: FieldRef,
    config: Arc<ConfigOptions>,
}

impl<'a> Planned<'a> {
    fn try_new(
        function: &'a ScalarUDF,
        args: Vec<ColumnarValue>,
        config: &Arc<ConfigOptions>,
    ) -> Option<Self> {
        let (fields, returns) = plan_call(function, &args).ok()?;
        Some(Self { function, args, fields, returns, config: Arc::clone(config) })
    }

    /// Computes the function over `rows` rows, after `cut` has been applied to each column.
    fn over(&self, rows: usize, cut: impl Fn(&ArrayRef) -> ArrayRef) -> Result<ArrayRef, String> {
        let args = self.args.iter().map(|a| match a {
            ColumnarValue::Array(a) => ColumnarValue::Array(cut(a)),
            scalar => scalar.clone(),
        });
        let given = ScalarFunctionArgs {
            args: args.collect(),
            arg_fields: self.fields.clone(),
            number_rows: rows,
            return_field: Arc::clone(&self.returns),
            config_options: Arc::clone(&self.config),
        };
        let out = catch_unwind(AssertUnwindSafe(|| self.function.invoke_with_args(given)));
        let out = out.unwrap_or_else(|_| panic!("panic in {}", self.shown()));
        let out = out.map_err(|e| e.strip_backtrace())?.into_array(rows).unwrap();
        out.to_data().validate_full().unwrap_or_else(|e| panic!("{e} in {}", self.shown()));
        Ok(out)
    }

    fn shown(&self) -> String {
        let args: Vec<_> = self
            .args
            .iter()
            .map(|a| match a {
                ColumnarValue::Scalar(s) => format!("{s}"),
                ColumnarValue::Array(a) => format!("{}: {}", a.data_type(), show_array(a)),
            })
            .collect();
        format!("{}({})", self.function.name(), args.join(", "))
    }

    /// Checks that each row has the same result as alone. Returns the number of rows, or 0 if a row
    /// alone is an error.
    fn check(&self, rng: &mut ChaCha8Rng) -> usize {
        let batch = self.over(ROWS, Arc::clone);
        let each: Vec<_> = (0..ROWS).map(|i| self.over(1, |c| c.slice(i, 1))).collect();
        if let Some(failed) = each.iter().find_map(|r| r.as_ref().err()) {
            assert!(
                batch.is_err(),
                "{}\nfails for a row alone, but not for the batch: {failed}",
                self.shown()
            );
            return 0;
        }
        let batch = batch.unwrap_or_else(|e| {
            panic!("{}\nfails for the batch, but for no row alone: {e}", self.shown())
        });
        let each: Vec<ArrayRef> = each.into_iter().map(Result::unwrap).collect();
        let rows = |each: &[&ArrayRef]| {
            concat(&each.iter().map(|a| a.as_ref()).collect::<Vec<_>>()).unwrap()
        };
        let alone = rows(&each.iter().collect::<Vec<_>>());
        self.same(&batch, &alone, "each row alone");
        let at = rng.random_range(1..ROWS);
        let (a, b) =
            (self.over(at, |c| c.slice(0, at)), self.over(ROWS - at, |c| c.slice(at, ROWS - at)));
        self.same(&rows(&[&a.unwrap(), &b.unwrap()]), &alone, "two parts");
        let mut order: Vec<u64> = (0..ROWS as u64).collect();
        for i in (1..ROWS).rev() {
            order.swap(i, rng.random_range(0..=i));
        }
        let order = UInt64Array::from(order);
        let moved = self.over(ROWS, |c| take(c, &order, None).unwrap()).unwrap();
        self.same(&moved, &take(&alone, &order, None).unwrap(), "another order");
        ROWS
    }

    fn same(&self, found: &ArrayRef, alone: &ArrayRef, what: &str) {
        if found != alone {
            let row = (0..ROWS).find(|i| found.slice(*i, 1) != alone.slice(*i, 1)).unwrap();
            panic!(
                "{}\nrow {row}, {what}: {}\nalone: {}",
                self.shown(),
                show_array(&found.slice(row, 1)),
                show_array(&alone.slice(row, 1))
            );
        }
    }
}

fn show_array(array: &ArrayRef) -> String {
    let rows = (0..array.len()).map(|i| array_value_to_string(array, i).unwrap());
    rows.collect::<Vec<_>>().join(" | ")
}

#[tokio::test]
async fn results_of_a_batch_are_those_of_its_rows_alone() {
    let ctx = serrate::sql::session();
    let config = Arc::new(ctx.copied_config().options().as_ref().clone());
    let functions = serrate::functions::all_scalar();
    let asked = std::env::var("SERRATE_TRIALS").ok().and_then(|n| n.parse().ok());
    let trials: usize = asked.unwrap_or(TRIALS);
    let mut worked: Vec<(&str, usize)> = functions.iter().map(|f| (f.name(), 0)).collect();
    let mut failures: Vec<String> = Vec::new();
    for (number, call) in list_calls().iter().enumerate() {
        let (name, given) = split_arguments(call);
        let by_name =
            |f: &&Arc<ScalarUDF>| f.name() == name || f.aliases().iter().any(|a| a == name);
        let function = functions.iter().find(by_name).unwrap();
        let mut literals = Vec::new();
        for arg in &given {
            let (_, batches) = run(&ctx, &format!("SELECT {arg} AS a")).await.unwrap();
            literals.push(ScalarValue::try_from_array(batches[0].column(0), 0).unwrap());
        }
        let mut enough = 0;
        for trial in 0..trials.max(MORE) {
            if trial >= trials && enough >= FEW {
                break;
            }
            let seed = (number * 100_000 + trial) as u64;
            let rng = &mut ChaCha8Rng::seed_from_u64(seed);
            let trial = Trial {
                seed: rng.random(),
                single: pick_one(&[0, 0, 0, 30, 60, 100], rng.random()),
                other: pick_one(&[0, 0, 0, 2, 30], rng.random()),
                wild: rng.random_range(0..3) == 0,
                nulls: rng.random_range(0..2) == 0,
            };
            let places: Vec<u64> = (0..ROWS as u64).collect();
            let alike = rng.random_range(0..3) > 0;
            let args: Vec<ColumnarValue> = literals
                .iter()
                .map(|literal| {
                    let own = literal.data_type();
                    let t = if alike { own.clone() } else { vary_type(&own, rng) };
                    match rng.random_range(0..40) {
                        0 => ColumnarValue::Scalar(ScalarValue::Null),
                        1 => ColumnarValue::Scalar(
                            ScalarValue::try_from(&own).unwrap_or(ScalarValue::Null),
                        ),
                        2 => ColumnarValue::Array(new_null_array(&t, ROWS)),
                        3 => ColumnarValue::Array(new_null_array(&DataType::Null, ROWS)),
                        n if n < 12 => ColumnarValue::Scalar(literal.clone()),
                        _ => {
                            // Half of the arguments that are not lists are literals, which some
                            // functions require.
                            let flat = !own.is_nested();
                            if flat && rng.random_range(0..2) == 0 {
                                return ColumnarValue::Scalar(literal.clone());
                            }
                            let column = trial.values(&t, &places, 0, rng);
                            ColumnarValue::Array(column)
                        }
                    }
                })
                .collect();
            if !args.iter().any(|a| matches!(a, ColumnarValue::Array(_))) {
                continue;
            }
            let Some(planned) = Planned::try_new(function, args, &config) else { continue };
            match catch_unwind(AssertUnwindSafe(|| planned.check(rng))) {
                Ok(rows) => {
                    enough += usize::from(rows > 0);
                    let entry = worked.iter_mut().find(|(n, _)| *n == function.name());
                    entry.unwrap().1 += usize::from(rows > 0);
                }
                Err(e) => {
                    let said = e.downcast_ref::<String>().cloned().unwrap_or_default();
                    let said: String = said.chars().take(4000).collect();
                    failures.push(format!("{call}, seed {seed}: {said}"));
                }
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{} failures; the first of each call:\n{}",
        failures.len(),
        failures
            .iter()
            .scan(String::new(), |last, f| {
                let name = f.split('(').next().unwrap().to_string();
                let first = *last != name;
                *last = name;
                Some(first.then_some(f.as_str()))
            })
            .flatten()
            .collect::<Vec<_>>()
            .join("\n\n")
    );
    // Each function must have been tried, and some of its trials must have succeeded.
    let few: Vec<_> = worked.iter().filter(|(_, n)| *n < FEW).collect();
    assert!(few.is_empty(), "few trials succeeded, so add calls to CALLS: {few:?}");
}
