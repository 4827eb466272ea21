//! Casts and types: decimals, times, dictionaries, and strings of times and lists. Rules that choose the common
//! type of operands, that give a cast another result, or that keep a cast from being moved.

pub(in crate::sql) mod boolean_casts;
pub(in crate::sql) mod cast_statistics;
pub(in crate::sql) mod coarser_times;
pub(in crate::sql) mod compared_casts;
mod decimal_types;
mod decimal_values;
pub(in crate::sql) mod decimals;
pub(in crate::sql) mod dictionary_casts;
pub(in crate::sql) mod list_texts;
pub(in crate::sql) mod local_times;
pub(in crate::sql) mod text_to_list_casts;
pub(in crate::sql) mod text_to_time_casts;
pub(in crate::sql) mod texts;
pub(in crate::sql) mod times;
