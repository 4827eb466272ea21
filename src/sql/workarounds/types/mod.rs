//! Workarounds for bugs of DataFusion and Arrow in casts and types: decimals, times, dictionaries,
//! and strings of times and lists. Their rules choose the common type of operands, give a cast
//! another result, or keep a cast from being moved.

pub(in crate::sql) mod boolean_casts;
pub(in crate::sql) mod cast_statistics;
pub(in crate::sql) mod coarser_times;
pub(in crate::sql) mod compared_casts;
mod decimal_literals;
mod decimal_types;
mod decimal_values;
pub(in crate::sql) mod decimals;
pub(in crate::sql) mod dictionary_casts;
pub(in crate::sql) mod float_ranges;
pub(in crate::sql) mod large_texts;
pub(in crate::sql) mod list_texts;
pub(in crate::sql) mod local_times;
pub(in crate::sql) mod narrow_floats;
pub(in crate::sql) mod nearest_floats;
pub(in crate::sql) mod text_to_decimal_casts;
pub(in crate::sql) mod text_to_list_casts;
pub(in crate::sql) mod text_to_time_casts;
pub(in crate::sql) mod texts;
pub(in crate::sql) mod times;
mod value_columns;
