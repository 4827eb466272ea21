//! Sliding frames of aggregates that cannot remove rows: DataFusion's `bool_and`, `bool_or`,
//! `bit_and`, `bit_or`, `string_agg` and `approx_..`, and Serrate's aggregates of lists. The code
//! for DataFusion's aggregates is obsolete once the test `stock_frames_of_booleans_still_fail`
//! fails.
//!
//! DataFusion's `bit_xor` can remove rows, but is 0 instead of NULL over a frame from which all
//! rows were removed. The replacement is obsolete once the test
//! `stock_bit_xor_of_no_rows_is_still_zero` fails.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::concat;
use arrow::datatypes::{FieldRef, Schema};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::{Accumulator, AggregateUDF};
use datafusion::physical_expr::PhysicalExpr;

/// Maximum number of batches that hold the rows of a frame. If there are more, all are
/// concatenated.
const MOST_BATCHES: usize = 32;

pub(super) fn make_accumulator(
    stock: &Arc<AggregateUDF>,
    args: AccumulatorArgs<'_>,
) -> Result<Box<dyn Accumulator>> {
    let is_all = match stock.name() {
        "bool_and" => Some(true),
        "bool_or" => Some(false),
        _ => None,
    };
    if let Some(all) = is_all {
        return Ok(Box::new(CountedBooleans { all, ..CountedBooleans::default() }));
    }
    let call = AggregateCall::new(Arc::clone(stock), &args);
    let own = stock.create_sliding_accumulator(args)?;
    if own.supports_retract_batch() {
        return Ok(match stock.name() {
            "bit_xor" => Box::new(CountedBits { stock: own, values: 0 }),
            _ => own,
        });
    }
    Ok(Box::new(ReplayedFrame { call, batches: VecDeque::new() }))
}

/// Returns an accumulator of `aggregate` for sliding frames, which aggregates all rows of a frame
/// again for each result.
pub(super) fn replay_frames(
    aggregate: AggregateUDF,
    args: &AccumulatorArgs<'_>,
) -> Box<dyn Accumulator> {
    Box::new(ReplayedFrame {
        call: AggregateCall::new(Arc::new(aggregate), args),
        batches: VecDeque::new(),
    })
}

/// Accumulator of `bool_and` and `bool_or` over sliding frames: counts the true and the false
/// values, so that rows can leave the frame.
#[derive(Debug, Default)]
struct CountedBooleans {
    /// Whether all values must be true (`bool_and`), or at least one (`bool_or`).
    all: bool,
    num_true: usize,
    num_false: usize,
}

/// Returns how many values of the first column are true, and how many are false.
fn count_booleans(values: &[ArrayRef]) -> (usize, usize) {
    let Some(values) = values.first().and_then(|values| values.as_boolean_opt()) else {
        return (0, 0);
    };
    (values.true_count(), values.false_count())
}

impl Accumulator for CountedBooleans {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (num_true, num_false) = count_booleans(values);
        self.num_true = self.num_true.saturating_add(num_true);
        self.num_false = self.num_false.saturating_add(num_false);
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (num_true, num_false) = count_booleans(values);
        self.num_true = self.num_true.saturating_sub(num_true);
        self.num_false = self.num_false.saturating_sub(num_false);
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let value = match (self.num_true, self.num_false) {
            (0, 0) => None,
            (num_true, num_false) => Some(if self.all { num_false == 0 } else { num_true > 0 }),
        };
        Ok(ScalarValue::Boolean(value))
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }
}

/// Accumulator of `bit_xor` over sliding frames: counts values, so that the result is NULL if the
/// frame has no value.
#[derive(Debug)]
struct CountedBits {
    stock: Box<dyn Accumulator>,
    /// Number of values in the frame that are not NULL.
    values: usize,
}

fn count_valid(values: &[ArrayRef]) -> usize {
    values.first().map_or(0, |values| values.len() - values.logical_null_count())
}

impl Accumulator for CountedBits {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.values = self.values.saturating_add(count_valid(values));
        self.stock.update_batch(values)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.values = self.values.saturating_sub(count_valid(values));
        self.stock.retract_batch(values)
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let value = self.stock.evaluate()?;
        match self.values {
            0 => ScalarValue::try_from(value.data_type()),
            _ => Ok(value),
        }
    }

    fn size(&self) -> usize {
        size_of_val(self).saturating_add(self.stock.size())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }
}

/// Owned parts of [`AccumulatorArgs`], from which each evaluation creates an accumulator.
struct AggregateCall {
    aggregate: Arc<AggregateUDF>,
    return_field: FieldRef,
    schema: Schema,
    ignore_nulls: bool,
    is_distinct: bool,
    name: String,
    exprs: Vec<Arc<dyn PhysicalExpr>>,
    expr_fields: Vec<FieldRef>,
}

impl AggregateCall {
    fn new(aggregate: Arc<AggregateUDF>, args: &AccumulatorArgs<'_>) -> Self {
        Self {
            aggregate,
            return_field: Arc::clone(&args.return_field),
            schema: args.schema.clone(),
            ignore_nulls: args.ignore_nulls,
            is_distinct: args.is_distinct,
            name: args.name.to_owned(),
            exprs: args.exprs.to_vec(),
            expr_fields: args.expr_fields.to_vec(),
        }
    }

    fn new_accumulator(&self) -> Result<Box<dyn Accumulator>> {
        // DataFusion has no ORDER BY in the arguments of window functions, so `order_bys` is empty.
        self.aggregate.accumulator(AccumulatorArgs {
            return_field: Arc::clone(&self.return_field),
            schema: &self.schema,
            ignore_nulls: self.ignore_nulls,
            order_bys: &[],
            is_reversed: false,
            name: &self.name,
            is_distinct: self.is_distinct,
            exprs: &self.exprs,
            expr_fields: &self.expr_fields,
        })
    }
}

/// Keeps the rows of a frame and aggregates all of them for each result, in time linear in the
/// width of the frame.
struct ReplayedFrame {
    call: AggregateCall,
    batches: VecDeque<Vec<ArrayRef>>,
}

impl fmt::Debug for ReplayedFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayedFrame").field("name", &self.call.name).finish_non_exhaustive()
    }
}

impl ReplayedFrame {
    fn concat_batches(&mut self) -> Result<()> {
        let columns = self.batches.front().map_or(0, Vec::len);
        let joined = (0..columns).map(|at| {
            let parts: Vec<&dyn Array> =
                self.batches.iter().filter_map(|b| b.get(at)).map(AsRef::as_ref).collect();
            Ok(concat(&parts)?)
        });
        let joined = joined.collect::<Result<Vec<_>>>()?;
        self.batches = VecDeque::from([joined]);
        Ok(())
    }
}

impl Accumulator for ReplayedFrame {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        if values.first().is_some_and(|first| !first.is_empty()) {
            self.batches.push_back(values.to_vec());
        }
        match self.batches.len() > MOST_BATCHES {
            true => self.concat_batches(),
            false => Ok(()),
        }
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        // Rows leave the frame in the order in which they entered it, so these are the first rows.
        let mut leaving = values.first().map_or(0, |first| first.len());
        while leaving > 0
            && let Some(batch) = self.batches.pop_front()
        {
            let rows = batch.first().map_or(0, |first| first.len());
            if let Some(rest) = rows.checked_sub(leaving).filter(|rest| *rest > 0) {
                let rest = batch.iter().map(|column| column.slice(leaving, rest)).collect();
                self.batches.push_front(rest);
            }
            leaving = leaving.saturating_sub(rows);
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let mut accumulator = self.call.new_accumulator()?;
        for batch in &self.batches {
            accumulator.update_batch(batch)?;
        }
        accumulator.evaluate()
    }

    fn size(&self) -> usize {
        let held = self.batches.iter().flatten().map(|column| column.get_array_memory_size());
        size_of_val(self).saturating_add(held.sum())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let mut accumulator = self.call.new_accumulator()?;
        for batch in &self.batches {
            accumulator.update_batch(batch)?;
        }
        accumulator.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }
}
