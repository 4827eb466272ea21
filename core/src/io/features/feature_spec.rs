//! Names and specifications of features: keys, windows of time and aggregates.

use std::fmt;
use std::hash::Hash;
use std::str::FromStr;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray, UInt32Array};

use crate::error::{Error, Result};
use crate::io::meds::Vocabulary;
use crate::io::repeated_names::find_repeated;
use crate::kernels::between::ClosedEnds;

const MICROSECONDS_PER_SECOND: i64 = 1_000_000;

/// The measurements that a feature aggregates: those with one code, or with any code of a given
/// prefix.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FeatureKey {
    /// The measurements with this code.
    Code(Arc<str>),
    /// The measurements whose code begins with this text. The text form has a `*` at the end:
    /// `LAB//*` for the prefix `LAB//`.
    Prefix(Arc<str>),
}

impl FeatureKey {
    pub(super) fn matches_code(&self, code: &str) -> bool {
        match self {
            Self::Code(own) => own.as_ref() == code,
            Self::Prefix(prefix) => code.starts_with(prefix.as_ref()),
        }
    }
}

impl fmt::Display for FeatureKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => f.write_str(code),
            Self::Prefix(prefix) => write!(f, "{prefix}*"),
        }
    }
}

/// The part of a subject's history that a feature aggregates, usually a window of time.
///
/// Text forms: a length such as `30d` (units `s`, `m` for minutes, `h`, `d`, `w`), `all` for the
/// whole history, and `static` for the facts without a time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FeatureWindow {
    name: String,
    pub(super) span: WindowSpan,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum WindowSpan {
    /// A window of this many microseconds before the time of the label.
    Last(i64),
    All,
    Static,
}

impl FromStr for FeatureWindow {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || {
            Error::invalid(format!(
                "{text:?} is not a window; write a length of time such as '30d' (units s, m for minutes, h, d, w), 'all' or 'static'"
            ))
        };
        let span = match text {
            "all" | "full" => WindowSpan::All,
            "static" => WindowSpan::Static,
            text => {
                let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
                let (number, unit) = text.split_at(digits);
                let seconds = match unit {
                    "s" => 1,
                    "m" => 60,
                    "h" => 3_600,
                    "d" => 86_400,
                    "w" => 7 * 86_400,
                    "mo" | "q" | "y" => {
                        return Err(Error::invalid(format!(
                            "{text:?} is not a window, because months and years differ in length; write a number of days such as '30d'"
                        )));
                    }
                    _ => return Err(wrong()),
                };
                let number: i64 = number.parse().map_err(|_| wrong())?;
                if number == 0 {
                    return Err(Error::invalid(format!(
                        "the window {text:?} has a length of 0; write a longer window such as '30d'"
                    )));
                }
                let micros = number.checked_mul(seconds * MICROSECONDS_PER_SECOND);
                WindowSpan::Last(micros.ok_or_else(|| {
                    Error::invalid(format!(
                        "the window {text:?} is longer than 2^63 - 1 microseconds; write 'all' or a shorter window such as '30d'"
                    ))
                })?
                )
            }
        };
        Ok(Self { name: text.to_owned(), span })
    }
}

impl fmt::Display for FeatureWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// The computation of a feature from the measurements of its window, in the order of their times.
///
/// All aggregates except `count` skip NULL. A NaN value makes every aggregate NaN, except the
/// counts, `first` and `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FeatureAggregate {
    /// The number of measurements, with a value or without.
    Count,
    /// The number of measurements with a value.
    ValueCount,
    /// The sum of the values.
    Sum,
    /// The sum of the squares of the values.
    SumOfSquares,
    /// The mean of the values.
    Mean,
    /// The smallest value.
    Min,
    /// The largest value.
    Max,
    /// The first value.
    First,
    /// The last value.
    Last,
    /// Slope, per day, of the least-squares line of the values over their times; NULL without two
    /// values at different times.
    Slope,
}

impl FeatureAggregate {
    /// All aggregates.
    pub const ALL: [Self; 10] = [
        Self::Count,
        Self::ValueCount,
        Self::Sum,
        Self::SumOfSquares,
        Self::Mean,
        Self::Min,
        Self::Max,
        Self::First,
        Self::Last,
        Self::Slope,
    ];

    /// Returns the name, such as `count`.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::features::FeatureAggregate;
    /// assert_eq!(FeatureAggregate::SumOfSquares.name(), "sum_sqd");
    /// ```
    pub fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::ValueCount => "value_count",
            Self::Sum => "sum",
            Self::SumOfSquares => "sum_sqd",
            Self::Mean => "mean",
            Self::Min => "min",
            Self::Max => "max",
            Self::First => "first",
            Self::Last => "last",
            Self::Slope => "slope",
        }
    }

    /// Returns whether the aggregate is 0 instead of NULL if there is nothing to aggregate.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::features::FeatureAggregate;
    /// assert!(FeatureAggregate::Sum.is_zero_of_nothing());
    /// assert!(!FeatureAggregate::Last.is_zero_of_nothing());
    /// ```
    pub fn is_zero_of_nothing(self) -> bool {
        matches!(self, Self::Count | Self::ValueCount | Self::Sum | Self::SumOfSquares)
    }
}

impl FromStr for FeatureAggregate {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|a| a.name() == text).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.into_iter().map(Self::name).collect();
            Error::invalid(format!(
                "{text:?} is not an aggregate of features; use one of {}",
                names.join(", ")
            ))
        })
    }
}

/// The features: every combination of a [`FeatureKey`], a [`FeatureWindow`] and a
/// [`FeatureAggregate`].
///
/// In the order of the features, the aggregate varies fastest and the key slowest.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::io::features::{FeatureKey, FeatureSpec};
/// let keys = vec![FeatureKey::Code("LAB//a".into()), FeatureKey::Prefix("DRUG//".into())];
/// let windows = vec!["30d".parse()?, "all".parse()?];
/// let spec = FeatureSpec::try_new(keys, windows, vec!["count".parse()?, "mean".parse()?])?;
/// assert_eq!((spec.num_features(), spec.name(3).as_str()), (8, "LAB//a/all/mean"));
/// assert_eq!(spec.name(4), "DRUG//*/30d/count");
/// assert_eq!((spec.keys().len(), spec.windows().len(), spec.aggregates().len()), (2, 2, 2));
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeatureSpec {
    keys: Vec<FeatureKey>,
    windows: Vec<FeatureWindow>,
    aggregates: Vec<FeatureAggregate>,
    closure: ClosedEnds,
}

impl FeatureSpec {
    /// Creates a feature for every combination of `keys`, `windows` and `aggregates`.
    ///
    /// A window includes its end, the time of the label, and excludes its start.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::features::{FeatureKey, FeatureSpec};
    /// let keys = vec![FeatureKey::Code("LAB//a".into())];
    /// let aggregates = vec!["count".parse()?, "last".parse()?];
    /// let spec = FeatureSpec::try_new(keys, vec!["30d".parse()?], aggregates)?;
    /// assert_eq!((spec.num_features(), spec.name(1).as_str()), (2, "LAB//a/30d/last"));
    /// assert!(FeatureSpec::try_new(vec![], vec!["30d".parse()?], vec!["last".parse()?]).is_err());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If one of the lists is empty or has a duplicate, or there are 2^32 features or more.
    pub fn try_new(
        keys: Vec<FeatureKey>,
        windows: Vec<FeatureWindow>,
        aggregates: Vec<FeatureAggregate>,
    ) -> Result<Self> {
        check_repeated("codes and prefixes", &keys, FeatureKey::to_string)?;
        check_repeated("windows", &windows, FeatureWindow::to_string)?;
        check_repeated("aggregates", &aggregates, |a| a.name().to_owned())?;
        let count = [windows.len(), aggregates.len()]
            .into_iter()
            .try_fold(keys.len(), usize::checked_mul)
            .filter(|n| u32::try_from(*n).is_ok());
        if count.is_none() {
            return Err(Error::invalid(format!(
                "{} codes and prefixes with {} windows and {} aggregates give more than 2^32 - 1 features, the maximum; choose fewer codes, windows or aggregates",
                keys.len(),
                windows.len(),
                aggregates.len()
            )));
        }
        Ok(Self { keys, windows, aggregates, closure: ClosedEnds::Right })
    }

    /// Sets whether windows include their start, end (the label's time), both or neither.
    ///
    /// By default, they include only their end.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::features::{FeatureKey, FeatureSpec};
    /// # let keys = vec![FeatureKey::Code("LAB//a".into()), FeatureKey::Prefix("DRUG//".into())];
    /// # let windows = vec!["30d".parse()?, "all".parse()?];
    /// # let spec = FeatureSpec::try_new(keys, windows, vec!["count".parse()?, "mean".parse()?])?;
    /// use serrate::kernels::between::ClosedEnds;
    /// assert_eq!(spec.clone().closed(ClosedEnds::Right), spec); // the default
    /// assert_ne!(spec.clone().closed(ClosedEnds::Neither), spec);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn closed(mut self, closure: ClosedEnds) -> Self {
        self.closure = closure;
        self
    }

    /// Returns a [`FeatureKey::Code`] for each code of a vocabulary, in the order of tokens.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::features::{FeatureKey, FeatureSpec};
    /// use serrate::io::meds::Vocabulary;
    /// let keys = FeatureSpec::keys_of(&Vocabulary::from_codes(["b", "a"])?);
    /// assert_eq!(keys, [FeatureKey::Code("a".into()), FeatureKey::Code("b".into())]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn keys_of(vocabulary: &Vocabulary) -> Vec<FeatureKey> {
        vocabulary.iter().map(|(code, _)| FeatureKey::Code(code.into())).collect()
    }

    /// Returns the number of features.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::features::{FeatureKey, FeatureSpec};
    /// # let keys = vec![FeatureKey::Code("LAB//a".into()), FeatureKey::Prefix("DRUG//".into())];
    /// # let windows = vec!["30d".parse()?, "all".parse()?];
    /// # let spec = FeatureSpec::try_new(keys, windows, vec!["count".parse()?, "mean".parse()?])?;
    /// let sizes = (spec.keys().len(), spec.windows().len(), spec.aggregates().len());
    /// assert_eq!((sizes, spec.num_features()), ((2, 2, 2), 8));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn num_features(&self) -> usize {
        self.keys.len() * self.windows.len() * self.aggregates.len()
    }

    /// Returns the codes and prefixes.
    pub fn keys(&self) -> &[FeatureKey] {
        &self.keys
    }

    /// Returns the windows.
    pub fn windows(&self) -> &[FeatureWindow] {
        &self.windows
    }

    /// Returns the aggregates.
    pub fn aggregates(&self) -> &[FeatureAggregate] {
        &self.aggregates
    }

    pub(super) fn window_closure(&self) -> ClosedEnds {
        self.closure
    }

    /// Returns the key, window and aggregate of a feature.
    ///
    /// Panics if the index is out of range.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::features::{FeatureKey, FeatureSpec};
    /// # let keys = vec![FeatureKey::Code("LAB//a".into()), FeatureKey::Prefix("DRUG//".into())];
    /// # let windows = vec!["30d".parse()?, "all".parse()?];
    /// # let spec = FeatureSpec::try_new(keys, windows, vec!["count".parse()?, "mean".parse()?])?;
    /// use serrate::io::features::FeatureAggregate;
    /// let (key, window, aggregate) = spec.parts(7);
    /// assert_eq!((key.to_string().as_str(), window.to_string().as_str()), ("DRUG//*", "all"));
    /// assert_eq!(aggregate, FeatureAggregate::Mean);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn parts(&self, feature: usize) -> (&FeatureKey, &FeatureWindow, FeatureAggregate) {
        let (aggregates, windows) = (self.aggregates.len(), self.windows.len());
        let (rest, aggregate) = (feature / aggregates, feature % aggregates);
        (&self.keys[rest / windows], &self.windows[rest % windows], self.aggregates[aggregate])
    }

    /// Returns a feature's name, `key/window/aggregate`.
    ///
    /// Panics if the index is out of range.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::features::{FeatureKey, FeatureSpec};
    /// # let keys = vec![FeatureKey::Code("LAB//a".into()), FeatureKey::Prefix("DRUG//".into())];
    /// # let windows = vec!["30d".parse()?, "all".parse()?];
    /// # let spec = FeatureSpec::try_new(keys, windows, vec!["count".parse()?, "mean".parse()?])?;
    /// assert_eq!(spec.name(0), "LAB//a/30d/count");
    /// assert_eq!(spec.name(7), "DRUG//*/all/mean");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn name(&self, feature: usize) -> String {
        let (key, window, aggregate) = self.parts(feature);
        format!("{key}/{window}/{}", aggregate.name())
    }

    /// Returns a row per feature: its index (`feature`), `name`, `code`, `window` and `aggregate`.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::features::{FeatureKey, FeatureSpec};
    /// # let keys = vec![FeatureKey::Code("LAB//a".into()), FeatureKey::Prefix("DRUG//".into())];
    /// # let windows = vec!["30d".parse()?, "all".parse()?];
    /// # let spec = FeatureSpec::try_new(keys, windows, vec!["count".parse()?, "mean".parse()?])?;
    /// let names = spec.names()?;
    /// assert_eq!((names.num_rows(), names.num_columns()), (8, 5));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Never: every column has one value per feature.
    pub fn names(&self) -> Result<RecordBatch> {
        let parts = || (0..self.num_features()).map(|f| self.parts(f));
        let numbers = (0..).take(self.num_features());
        let texts = |values: StringArray| Arc::new(values) as ArrayRef;
        let names = (0..self.num_features()).map(|f| self.name(f));
        Ok(RecordBatch::try_from_iter_with_nullable([
            ("feature", Arc::new(UInt32Array::from_iter_values(numbers)) as ArrayRef, false),
            ("name", texts(StringArray::from_iter_values(names)), false),
            ("code", texts(StringArray::from_iter_values(parts().map(|p| p.0.to_string()))), false),
            (
                "window",
                texts(StringArray::from_iter_values(parts().map(|p| p.1.to_string()))),
                false,
            ),
            ("aggregate", texts(StringArray::from_iter_values(parts().map(|p| p.2.name()))), false),
        ])?)
    }
}

fn check_repeated<T: Eq + Hash>(
    what: &str,
    values: &[T],
    name: impl Fn(&T) -> String,
) -> Result<()> {
    if values.is_empty() {
        return Err(Error::invalid(format!(
            "the list of {what} of the features is empty; give at least one"
        )));
    }
    match find_repeated(values) {
        None => Ok(()),
        Some(twice) => Err(Error::invalid(format!(
            "{:?} occurs twice in the {what} of features; name each once",
            name(twice)
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_spans_of_time() {
        let span = |text: &str| text.parse::<FeatureWindow>().map(|w| w.span);
        assert_eq!(span("30d").unwrap(), WindowSpan::Last(30 * 86_400 * 1_000_000));
        assert_eq!(span("90m").unwrap(), WindowSpan::Last(5_400 * 1_000_000));
        assert_eq!(
            (span("all").unwrap(), span("static").unwrap()),
            (WindowSpan::All, WindowSpan::Static)
        );
        for wrong in ["", "d", "30", "0d", "-1d", "1.5d", "1y", "99999999999999d", "30 d"] {
            let message = span(wrong).unwrap_err().to_string();
            assert!(message.contains("'30d'"), "{message}");
        }
        assert!(span("1y").unwrap_err().to_string().contains("write a number of days"));
    }

    #[test]
    fn features_are_numbered_key_by_key() {
        let keys = || vec![FeatureKey::Code("a".into()), FeatureKey::Prefix("b".into())];
        let windows = || vec!["1d".parse().unwrap(), "all".parse().unwrap()];
        let spec = FeatureSpec::try_new(keys(), windows(), FeatureAggregate::ALL.to_vec()).unwrap();
        assert_eq!(spec.num_features(), 40);
        assert_eq!(spec.name(0), "a/1d/count");
        assert_eq!(spec.name(39), "b*/all/slope");
        assert_eq!(spec.names().unwrap().num_rows(), 40);
        let twice = FeatureSpec::try_new(keys(), [windows(), windows()].concat(), vec![]);
        assert!(twice.unwrap_err().to_string().contains("\"1d\" occurs twice"));
        let none = FeatureSpec::try_new(keys(), windows(), vec![]).unwrap_err().to_string();
        assert!(none.contains("aggregates of the features is empty"), "{none}");
    }
}
