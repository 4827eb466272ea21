//! [`FeatureState`]: the running state of all aggregates of one feature key (a code or a prefix) in one window.

use super::feature_spec::FeatureAggregate;

const MICROSECONDS_PER_DAY: f64 = 86_400e6;

/// A compensated sum with twice the precision of f64, so that rounding errors do not accumulate.
#[derive(Clone, Copy, Debug, Default)]
struct CompensatedSum {
    high: f64,
    low: f64,
}

impl CompensatedSum {
    fn add(&mut self, value: f64) {
        let sum = self.high + value;
        let back = sum - self.high;
        self.low += (self.high - (sum - back)) + (value - back);
        self.high = sum;
    }

    fn get(self) -> f64 {
        let sum = self.high + self.low;
        // If the sum is infinite, the field `low` is NaN and must not be added.
        if self.high.is_finite() { sum } else { self.high }
    }

    /// Returns the sum divided by `n`, rounded once.
    fn divide_by(self, n: f64) -> f64 {
        let quotient = self.get() / n;
        if !quotient.is_finite() {
            return quotient;
        }
        let rest = (-quotient).mul_add(n, self.high) + self.low;
        quotient + rest / n
    }
}

/// Least-squares line of values (y) over time (x). Holds means, and sums of products of deviations
/// from these means, because plain sums of x, y, x² and xy would lose precision.
#[derive(Clone, Copy, Debug, Default)]
struct LeastSquaresLine {
    mean_x: f64,
    mean_y: f64,
    deviation_x: f64,
    codeviation_xy: f64,
}

impl LeastSquaresLine {
    fn add(&mut self, n: f64, x: f64, y: f64) {
        let from_mean = x - self.mean_x;
        self.mean_x += from_mean / n;
        self.mean_y += (y - self.mean_y) / n;
        self.deviation_x += from_mean * (x - self.mean_x);
        self.codeviation_xy += from_mean * (y - self.mean_y);
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FeatureState {
    pub(super) count: u64,
    values: u64,
    sum: CompensatedSum,
    squares: CompensatedSum,
    min: f64,
    max: f64,
    first: f64,
    last: f64,
    line: LeastSquaresLine,
    /// Time of the first value. The field `spread` is true if a later value has another time.
    origin: i64,
    spread: bool,
}

impl FeatureState {
    /// Adds a measurement; measurements must be added in the order of their times. `slope` tells
    /// whether to update the field `line`.
    #[inline]
    pub(super) fn add(&mut self, value: Option<f32>, time: i64, slope: bool) {
        self.count += 1;
        let Some(value) = value.map(f64::from) else { return };
        self.values += 1;
        if self.values == 1 {
            (self.min, self.max, self.first) = (value, value, value);
            self.origin = time;
        } else {
            // A NaN stays minimum and maximum, because later comparisons with it are false.
            if value < self.min || value.is_nan() {
                self.min = value;
            }
            if value > self.max || value.is_nan() {
                self.max = value;
            }
        }
        self.last = value;
        self.sum.add(value);
        self.squares.add(value * value);
        if slope {
            self.spread |= time != self.origin;
            let days = (i128::from(time) - i128::from(self.origin)) as f64 / MICROSECONDS_PER_DAY;
            self.line.add(self.values as f64, days, value);
        }
    }

    #[inline]
    pub(super) fn get(&self, aggregate: FeatureAggregate) -> Option<f64> {
        if aggregate == FeatureAggregate::Count {
            return (self.count > 0).then_some(self.count as f64);
        }
        if self.values == 0 {
            return None;
        }
        Some(match aggregate {
            FeatureAggregate::Count => return None,
            FeatureAggregate::ValueCount => self.values as f64,
            FeatureAggregate::Sum => self.sum.get(),
            FeatureAggregate::SumOfSquares => self.squares.get(),
            FeatureAggregate::Mean => self.sum.divide_by(self.values as f64),
            FeatureAggregate::Min => self.min,
            FeatureAggregate::Max => self.max,
            FeatureAggregate::First => self.first,
            FeatureAggregate::Last => self.last,
            FeatureAggregate::Slope if self.spread => {
                self.line.codeviation_xy / self.line.deviation_x
            }
            FeatureAggregate::Slope => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[(i64, Option<f32>)]) -> FeatureState {
        let mut state = FeatureState::default();
        for (time, value) in values {
            state.add(*value, *time, true);
        }
        state
    }

    #[test]
    fn aggregates_skip_null() {
        const DAY: i64 = 86_400_000_000;
        let state = of(&[(0, Some(3.0)), (0, None), (2 * DAY, Some(-1.0)), (2 * DAY, None)]);
        let expected = [4.0, 2.0, 2.0, 10.0, 1.0, -1.0, 3.0, 3.0, -1.0, -2.0];
        for (aggregate, expected) in FeatureAggregate::ALL.into_iter().zip(expected) {
            assert_eq!(state.get(aggregate), Some(expected), "{aggregate:?}");
        }
        let nothing = of(&[(0, None)]);
        assert_eq!(nothing.get(FeatureAggregate::Count), Some(1.0));
        for aggregate in FeatureAggregate::ALL.into_iter().skip(1) {
            assert_eq!(nothing.get(aggregate), None, "{aggregate:?}");
        }
        assert_eq!(of(&[(5, Some(1.0)), (5, Some(2.0))]).get(FeatureAggregate::Slope), None);
    }

    #[test]
    fn sums_keep_small_values_and_infinities() {
        let sum = |values: &[f32]| {
            of(&values.iter().map(|v| (0, Some(*v))).collect::<Vec<_>>()).get(FeatureAggregate::Sum)
        };
        assert_eq!(sum(&[1e30, 1.0, -1e30]), Some(1.0));
        assert_eq!(sum(&[f32::INFINITY, 1.0]), Some(f64::INFINITY));
        assert!(sum(&[f32::INFINITY, f32::NEG_INFINITY]).is_some_and(f64::is_nan));
        let mixed = of(&[(0, Some(1.0)), (0, Some(f32::NAN)), (1, Some(0.5))]);
        for aggregate in FeatureAggregate::ALL.into_iter().skip(2) {
            let nan = mixed.get(aggregate).is_some_and(f64::is_nan);
            let kept = matches!(aggregate, FeatureAggregate::First | FeatureAggregate::Last);
            assert_eq!(nan, !kept, "{aggregate:?}");
        }
    }
}
