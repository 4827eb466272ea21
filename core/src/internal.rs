//! Items that only the SQL layer and the command line use. They change without notice, and
//! `serrate` does not export them.
//!
//! Methods of public types that only the SQL layer calls are `#[doc(hidden)]`.

pub use crate::array::arrow::build_lists_as;
#[cfg(feature = "sql")]
pub use crate::array::canonical::{holds_float, to_canonical_floats};
pub use crate::array::exact_casts::cast_strictly;
#[cfg(feature = "sql")]
pub use crate::array::exact_casts::check_decimal_precision;
#[cfg(feature = "sql")]
pub use crate::array::extent::{trim_extent, trim_nulls, trim_offsets};
pub use crate::array::nearest_doubles::{rounds_twice, to_nearest_doubles};
pub use crate::array::nested_types::holds_type;
pub use crate::array::nulls::{find_true_bits, replace_validity};
pub use crate::array::record_batch::build_record_batch;
#[cfg(feature = "sql")]
pub use crate::index::index_parser::find_item_positions;
#[cfg(feature = "sql")]
pub use crate::io::atomic::move_into_place;
pub use crate::io::atomic::{AtomicFile, AtomicFiles, AtomicFolder};
pub use crate::io::hidden_names::{is_hidden, is_hidden_name};
#[cfg(any(feature = "parquet", feature = "sql"))]
pub use crate::io::lease::complete_commits;
pub use crate::io::lease::{NameLease, is_temporary, remove_temporaries};
pub use crate::io::natural_order::{make_natural_key, make_text_key};
pub use crate::io::reader_panics::find_panic_text;
pub use crate::io::repeated_names::{find_repeated, find_repeated_name};
#[cfg(feature = "sql")]
pub use crate::io::stamp::FileStamp;
pub use crate::kernels::align::{align_arrays, share_lists};
#[cfg(feature = "sql")]
pub use crate::kernels::argument_casts::cast_exactly;
#[cfg(feature = "sql")]
pub use crate::kernels::elementwise::spans::{choose_span_type, compute_spans, is_span};
pub use crate::kernels::levels::merge_all_levels;
#[cfg(feature = "sql")]
pub use crate::kernels::list_bytes::{decode_lists, encode_lists, has_byte_form};
pub use crate::kernels::reduce::quantile::select_ordered_quantile;
pub use crate::kernels::reduce::rounded::{round_mean, select_rounded_quantile};
pub use crate::kernels::secret_hash::SecretHashState;
pub use crate::kernels::text_lists::parse_lists;
#[cfg(feature = "sql")]
pub use crate::kernels::time_parts::{TimePart, extract_time_part};
pub use crate::loader::save::check_target;
pub use crate::locks::lock_mutex;

/// Checks of Arrow IPC data before it is read, and conversions of batches before they are written.
pub mod arrow_ipc {
    pub use crate::io::arrow_ipc::message_check::MessageChecker;
    pub use crate::io::arrow_ipc::writer::{as_schema, remove_dictionaries};
}

/// Quoting of CSV fields, so that NULL and an empty string differ.
#[cfg(feature = "sql")]
pub mod csv {
    pub use crate::io::csv::{CsvQuotes, has_text, quote_fields};
}

/// Exact sums of floats, which do not depend on the order of the terms.
#[cfg(feature = "sql")]
pub mod exact {
    pub use crate::kernels::reduce::exact_sums::{
        ExactSumKind, ExactSums, ScaledInteger, SumTerms,
    };
}

/// Conversion of list columns to JSON strings, and the schema of the result.
#[cfg(feature = "sql")]
pub mod json {
    pub use crate::io::json::json_columns::{convert_lists_to_json, make_text_schema};
}

/// Finds the row of each key in a table. Also finds the bin of each number, where each number
/// belongs to a key, and each key has its own bin edges.
pub mod lookup {
    pub use crate::kernels::lookup::{
        LookupIndex, check_comparable, find_bins, look_up_values, read_cuts,
    };
}

/// Exact conversion of times and spans (durations and intervals), also from and to strings.
pub mod times {
    pub use crate::kernels::span_texts::{has_spans, make_span_formatter, write_spans};
    pub use crate::kernels::time_texts::{complete_time, complete_times, has_texts};
    pub use crate::kernels::times::{
        EXACT_SECONDS, INTERVAL_NANOSECONDS, NANOSECONDS_PER_DAY, cast_time, compare_exactly,
        convert_all_exactly, convert_exactly, count_nanoseconds, is_instant_or_span,
        parse_exact_seconds, to_exact_nanoseconds, to_exact_seconds,
    };
}

/// Local times in time zones whose offset from UTC changes.
pub mod zones {
    pub use crate::kernels::zones::{add_intervals, local_to_instants, may_change, to_local};
}

/// Durations and intervals as text in CSV and JSON.
#[cfg(feature = "sql")]
pub mod spans {
    pub use crate::io::span_columns::{convert_spans_to_texts, make_span_text_schema};
}

/// Reads and changes files of sparse tensors and of dictionaries (maps from keys to values).
#[cfg(feature = "sql")]
pub mod keyed {
    pub use crate::io::keyed::*;
}

/// List columns and column types of MEDS (Medical Event Data Standard) data sets, for queries.
#[cfg(feature = "parquet")]
pub mod meds {
    pub use crate::io::meds::list_view::{
        AsOfBatchLimits, AsOfRanges, AsOfView, AsOfViewStep, divide_labels,
    };
    pub use crate::io::meds::plain_types::{find_plain_type, unify_types};
    pub use crate::io::meds::shard::NeededColumns;
}

/// Places and checks of column chunks in Parquet files, and conversion of columns to the types with
/// which the files store them.
#[cfg(feature = "parquet")]
pub mod parquet {
    pub use crate::io::parquet::dictionary_pages::{check_fetched_dictionaries, find_chunk_bytes};
    pub use crate::io::parquet::stored_types::{to_stored, to_stored_schema};
}

/// Makes the first request for a safetensors file in an object store, merges the ranges of further
/// requests, and converts store errors.
#[cfg(feature = "object_store")]
pub mod safetensors {
    pub use crate::io::safetensors::object::{
        coalesce_ranges, convert_store_error, make_first_request,
    };
}
