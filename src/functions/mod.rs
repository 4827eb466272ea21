//! SQL functions on nested lists, and the operators that call them.
//!
//! [`register_functions`] adds the functions to a session; [`register_operators`] makes `+`, `>`,
//! `AND` and other operators work on lists. Axis 0 is the rows, axis `k` is the `k`-th level of
//! lists, and negative axes count from the innermost. A result has the kinds of lists of the
//! argument, except that a `FixedSizeList` becomes a `List` unless a function documents otherwise.

mod aggregate;
mod args;
mod between;
mod broadcast;
mod chain;
mod choose;
mod clipped_element;
mod clipped_slice;
mod common_decimal;
mod common_unit;
mod decimal_range;
mod declaration;
mod def;
mod delegation;
mod densify;
mod doc;
mod dok;
mod element_types;
mod expression_planners;
mod failure;
mod file_cache;
mod filter;
mod float_lists;
mod float_range;
mod group;
mod harmless;
mod hidden;
mod index;
mod interval_order;
mod lambda;
mod lazy_lambdas;
mod lead;
mod list_contains;
mod list_counts;
mod list_fields;
mod list_keys;
mod list_subsets;
mod lists;
mod long_number;
mod long_results;
mod lookup;
mod math;
mod mixed_dates;
mod mixed_times;
mod naming;
mod nearest_doubles;
mod nested_comparison;
mod nested_elements;
mod normalize;
mod number_lists;
mod operators;
mod over_lists;
mod pairs;
mod reduce;
mod repeated_bytes;
mod reshape;
mod running;
mod scalar;
mod scatter;
mod shape;
mod sort;
mod span_product;
mod stock_facts;
mod struct_elements;
mod structs;
mod take;
mod text;
mod text_positions;
mod timestamps;
mod unsigned;
mod untagged;
mod vocabulary_codes;
mod window;

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Arc, LazyLock};

use datafusion::error::Result;
use datafusion::execution::FunctionRegistry;
use datafusion::logical_expr::planner::ExprPlanner;
use datafusion::logical_expr::{AggregateUDF, HigherOrderUDF, ScalarUDF};
use datafusion::prelude::SessionContext;

use aggregate::AggFacts;
pub(crate) use aggregate::{
    OVER_TIMES, SUM_STATE, exact_aggregates, extend_to_times, find_interval_extreme,
    float_extremes, keep_window_order, make_exact_deviation, make_exact_mean, replaced_aggregates,
};
pub(crate) use chain::is_chain;
pub(crate) use clipped_element::build_clipped_element;
pub(crate) use clipped_slice::build_clipped_slice;
pub(crate) use common_unit::{find_finest_clock, find_finest_unit};
#[cfg(feature = "cluster")]
pub(crate) use decimal_range::get_precision_check;
pub(crate) use decimal_range::{check_precision, checks_precision};
pub(crate) use declaration::{
    are_scalars, call_on_arrays, coerce_arguments, count_call_rows, declare, same_field,
    take_first, to_columnar,
};
use def::{Def, FailureCase, FunctionFacts, RaggedUdf, TableArgument};
pub(crate) use def::{ListPart, ReadParts, remove_other_extension};
pub(crate) use delegation::delegate;
use doc::FunctionSection;
#[cfg(feature = "cli")]
pub(crate) use doc::wrap_words;
pub(crate) use dok::{TableNames, build_lookup_functions};
pub(crate) use element_types::{find_element_field, replace_element_type, replace_leaf};
pub(crate) use expression_planners::{
    DISTINCT, FILTER, NOT_DISTINCT, ON_LISTS, PREDICATES, SIGNED, fold_constant, is_constant,
    is_row_based, plans_predicates, refine_unit,
};
pub(crate) use failure::{cannot_fail, is_fixed_slice, never_fails};
pub(crate) use float_lists::float_lists;
pub(crate) use float_range::check_float_range;
#[cfg(feature = "cluster")]
pub(crate) use float_range::list_range_checks;
pub(crate) use harmless::physical_cannot_fail;
#[cfg(feature = "cluster")]
pub(crate) use hidden::build_masked_fields;
pub(crate) use hidden::{find_stock_field, mask_fields, remove_hidden_values};
pub(crate) use interval_order::{compare_intervals, measure_interval, to_canonical_intervals};
pub(crate) use lazy_lambdas::build_lazy_lambdas;
pub(crate) use lead::build_shifted_windows;
pub(crate) use list_contains::list_contains;
pub(crate) use list_counts::build_signed_counts;
pub(crate) use list_fields::{build_typed_lists, is_list_concatenation, make_elements_nullable};
#[cfg(feature = "cluster")]
pub(crate) use list_keys::list_key_functions;
pub(crate) use list_keys::{LIST_KEY, make_list_key, restore_list};
pub(crate) use list_subsets::build_null_subsets;
pub(crate) use long_number::{WITH_DIGITS, find_long_number, make_decimal_of_digits};
pub(crate) use long_results::charge_series;
pub(crate) use lookup::{BIN_COLUMNS, PAIR};
pub(crate) use mixed_dates::{cast_element_dates, cast_mixed_dates, move_all_dates};
pub(crate) use mixed_times::{DATE_INSTEAD, explain_mixed_times};
pub(crate) use naming::{COMPARISON, find_loosest_operator, find_precedence, write_literal};
pub(crate) use nearest_doubles::cast_to_nearest;
#[cfg(feature = "cluster")]
pub(crate) use nearest_doubles::get_nearest_doubles;
pub(crate) use nested_comparison::compare_nested;
pub(crate) use number_lists::{OTHER_LISTS, number_lists};
pub(crate) use over_lists::write_list_call;
pub(crate) use repeated_bytes::count_repeated_bytes;
#[cfg(feature = "cli")]
pub(crate) use scalar::documents::DocumentationText;
pub(crate) use scalar::scalar_functions;
#[cfg(feature = "cluster")]
pub(crate) use span_product::build_span_operations;
pub(crate) use stock_facts::{StockFact, has_fact};
pub(crate) use timestamps::{AS_TIMESTAMP, AT_TIME_ZONE, TRY_AS_TIMESTAMP, find_unit_of_text};
pub(crate) use unsigned::{build_signed_windows, is_for_signed, takes_unsigned};
#[cfg(feature = "cluster")]
pub(crate) use untagged::list_tag_functions;
pub(crate) use untagged::{
    SEVERAL_VOCABULARIES, are_tagged_tokens, differ_in_vocabulary, merge_tags, remove_tag,
    tag_tokens, untag_field,
};
pub(crate) use vocabulary_codes::find_local_codes;

macro_rules! example {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/functions/examples/", $name, ".txt"))
    };
}
pub(crate) use example;

/// All scalar functions, in the order of the documentation.
static DEFS: &[&Def] = &[
    &shape::NDIM,
    &shape::SHAPE,
    &shape::MAX_SHAPE,
    &shape::LENGTHS,
    &shape::COUNT,
    &reshape::FLATTEN,
    &reshape::SQUEEZE,
    &reshape::UNSQUEEZE,
    &reshape::RESHAPE,
    &index::SLICE,
    &index::HEAD,
    &index::TAIL,
    &index::GET,
    &index::AT,
    &index::AT_OR,
    &filter::FILTER,
    &filter::COMPRESS,
    &take::TAKE,
    &take::REVERSE,
    &take::REPEAT,
    &scatter::SCATTER,
    &scatter::INDICES_FROM_MASK,
    &scatter::MASK_FROM_INDICES,
    &index::SEARCHSORTED,
    &reduce::SUM,
    &reduce::PROD,
    &reduce::MEAN,
    &reduce::MIN,
    &reduce::MAX,
    &reduce::STD,
    &reduce::VAR,
    &reduce::MEDIAN,
    &reduce::QUANTILE,
    &reduce::ARGMIN,
    &reduce::ARGMAX,
    &reduce::FIRST,
    &reduce::LAST,
    &reduce::NUNIQUE,
    &reduce::MODE,
    &operators::ANY,
    &operators::ALL,
    &running::CUMSUM,
    &running::CUMPROD,
    &running::CUMMIN,
    &running::CUMMAX,
    &running::DIFF,
    &running::SHIFT,
    &running::FFILL,
    &running::BFILL,
    &sort::SORT,
    &sort::ARGSORT,
    &sort::RANK,
    &sort::UNIQUE,
    &group::KEYS,
    &group::GROUP,
    &window::WINDOW,
    &window::ASOF,
    &window::ROLLING,
    &window::NGRAMS,
    &pairs::CORR,
    &pairs::SLOPE,
    &pairs::INTERCEPT,
    &operators::ADD,
    &operators::SUB,
    &operators::MUL,
    &operators::DIV,
    &operators::MOD,
    &operators::EQ,
    &operators::NE,
    &operators::LT,
    &operators::LE,
    &operators::GT,
    &operators::GE,
    &operators::AND,
    &operators::OR,
    &operators::XOR,
    &operators::POW,
    &operators::MINIMUM,
    &operators::MAXIMUM,
    &operators::NEG,
    &operators::NOT,
    &between::BETWEEN,
    &math::IS_NULL,
    &math::IS_NAN,
    &math::ROUND,
    &math::ABS,
    &math::SIGN,
    &math::CEIL,
    &math::FLOOR,
    &math::SQRT,
    &math::EXP,
    &math::LN,
    &math::LOG2,
    &math::LOG10,
    &choose::WHERE,
    &choose::FILL_NULL,
    &choose::CAST,
    &choose::TRY_CAST,
    &normalize::SOFTMAX,
    &normalize::LOG_SOFTMAX,
    &normalize::NORMALIZE,
    &text::LIKE,
    &text::ILIKE,
    &text::MATCHES,
    &text::STARTS_WITH,
    &text::ISIN,
    &structs::ZIP,
    &structs::UNZIP,
    &broadcast::BROADCAST,
    &broadcast::COORDS,
    &vocabulary_codes::ENCODE,
    &vocabulary_codes::DECODE,
    &vocabulary_codes::DESCENDANTS,
    &lookup::LOOKUP,
    &lookup::BIN,
    &dok::GET,
    &dok::CONTAINS,
    &densify::DENSIFY,
    &densify::MASK,
    &densify::VALID,
    &densify::PAD,
];

static SCALAR: LazyLock<Vec<Arc<ScalarUDF>>> =
    LazyLock::new(|| DEFS.iter().map(|def| Arc::new(RaggedUdf::new_udf(def))).collect());

/// The index of each function in [`DEFS`] and [`SCALAR`], by name. Rules look up the function of
/// each call several times.
static INDICES: LazyLock<HashMap<&'static str, usize>> =
    LazyLock::new(|| DEFS.iter().enumerate().map(|(index, def)| (def.name, index)).collect());

static AGGREGATE: LazyLock<Vec<Arc<AggregateUDF>>> =
    LazyLock::new(|| aggregate::build_udafs().into_iter().map(Arc::new).collect());

static MAP: LazyLock<Arc<HigherOrderUDF>> =
    LazyLock::new(|| Arc::new(lambda::build_udf(lambda::NAME)));

pub(crate) fn is_ours(function: &ScalarUDF) -> bool {
    find_scalar(function.name()).is_some_and(|ours| ours.as_ref() == function)
}

pub(crate) fn find_definition(function: &ScalarUDF) -> Option<&'static Def> {
    find_named(function.name()).filter(|_| is_ours(function))
}

fn find_named(name: &str) -> Option<&'static Def> {
    DEFS.get(*INDICES.get(name)?).copied()
}

fn find_by_name_or_alias(name: &str) -> Option<&'static Def> {
    DEFS.iter().find(|def| def.name == name || def.aliases.contains(&name)).copied()
}

/// Returns the properties of a function of Serrate that planner rules use, or
/// [`FunctionFacts::NONE`] for any other function.
pub(crate) fn find_facts(function: &ScalarUDF) -> &'static FunctionFacts {
    find_definition(function).map_or(&FunctionFacts::NONE, |def| &def.facts)
}

/// Whether a call of a function may return a time although none of its arguments holds a time.
pub(crate) fn may_return_times(function: &ScalarUDF) -> bool {
    use FunctionSection::{Elementwise, Index, Reduce, Running, Shape};
    if matches!(find_list_reads(function), ReadParts::Lengths | ReadParts::Structure) {
        return false;
    }
    find_definition(function).is_none_or(|def| {
        let returns_values =
            matches!(def.doc.section, Elementwise | Index | Reduce | Running | Shape);
        def.facts.casts_to_named_type || !returns_values
    })
}

/// Returns whether a function of Serrate or DataFusion reads the values of the lists in its first
/// argument, or only their lengths.
pub(crate) fn find_list_reads(function: &ScalarUDF) -> ReadParts {
    match function.name() {
        name if has_fact(name, StockFact::ReadsLengths) => ReadParts::Lengths,
        name if has_fact(name, StockFact::ReadsStructure) => ReadParts::Structure,
        _ => find_facts(function).reads,
    }
}

/// Returns which elements of the list in its first argument a call of a function of Serrate or
/// DataFusion depends on: all, the first or last ones, a range, or one element.
pub(crate) fn find_list_part(function: &ScalarUDF) -> ListPart {
    match has_fact(function.name(), StockFact::ReadsElement) {
        true => ListPart::Element(1),
        false => find_facts(function).part,
    }
}

/// Returns the properties of an aggregate of Serrate or DataFusion that planner rules use, or
/// [`AggFacts::NONE`] for any other aggregate.
pub(crate) fn find_aggregate_facts(name: &str) -> &'static AggFacts {
    aggregate::find_facts(name).unwrap_or_else(|| stock_facts::find_aggregate_facts(name))
}

/// Returns the name of the list function for the scalar function or aggregate `name`, such as
/// `ragged_sum` for `sum`, or `None` if there is none.
pub(crate) fn find_list_function(name: &str) -> Option<&'static str> {
    let named = |def: &&&Def| def.name.strip_prefix("ragged_") == Some(name);
    let of = DEFS.iter().find(|def| def.facts.instead_of.contains(&name));
    of.or_else(|| DEFS.iter().find(named)).map(|def| def.name)
}

/// Returns the name of the function `name` as a static string, and its argument that names a
/// look-up table. Returns `None` if there is no such function or argument.
pub(crate) fn find_table_argument(name: &str) -> Option<(&'static str, TableArgument)> {
    let def = find_named(name)?;
    Some((def.name, def.facts.table?))
}

/// Returns the function that replaces the scalar function `name` in calls on lists, or `None` if
/// there is none.
fn find_replacement_on_lists(name: &str) -> Option<&'static Arc<ScalarUDF>> {
    let def = DEFS.iter().find(|def| def.facts.planned_for == Some(name))?;
    find_scalar(def.name)
}

/// Whether the function `name` reads a file by the path in an argument.
#[cfg(feature = "cluster")]
pub(crate) fn reads_paths(name: &str) -> bool {
    find_named(name).is_some_and(|def| def.facts.reads_paths)
}

/// Whether no call of the function `name` fails, whatever the values of its arguments.
#[doc(hidden)]
pub fn is_total(name: &str) -> bool {
    find_named(name).is_some_and(|def| def.fails == FailureCase::Never)
}

pub(crate) fn find_scalar(name: &str) -> Option<&'static Arc<ScalarUDF>> {
    SCALAR.get(*INDICES.get(name)?)
}

/// Returns the names of the parameters of a function of Serrate, and how many of them are required.
/// Returns `None` for other functions, and if calls of the function have no fixed parameters.
pub(crate) fn list_parameter_names(name: &str) -> Option<(Vec<&'static str>, usize)> {
    let def = find_by_name_or_alias(name)?;
    Some((def.list_parameter_names()?, def.arity.0))
}

/// Whether FILTER (WHERE mask) can follow a call of a function. True for functions that reduce a
/// list, or two lists: `f(x) FILTER (WHERE m)` means `f(ragged_filter(x, m))`.
pub(crate) fn takes_filter(name: &str) -> bool {
    find_by_name_or_alias(name).is_some_and(|def| {
        def.doc.section == FunctionSection::Reduce
            || def.name == shape::COUNT.name
            || def.facts.pairs
    })
}

pub(crate) fn find_aggregate(name: &str) -> Option<&'static Arc<AggregateUDF>> {
    AGGREGATE.iter().find(|f| f.name() == name)
}

/// Returns `ragged_map`, the only function of Serrate that takes a lambda.
pub(crate) fn get_map_function() -> &'static Arc<HigherOrderUDF> {
    &MAP
}

#[cfg(test)]
pub(crate) fn find_arity(name: &str) -> Option<(usize, usize)> {
    let scalar = find_named(name).map(|def| def.arity);
    scalar.or_else(|| aggregate::find_aggregate_arity(name))
}

/// Returns the first form of a call, such as `ragged_sum(x)`, that the documentation of a scalar
/// function of Serrate gives. Returns `None` for other functions.
#[cfg(test)]
pub(crate) fn find_first_syntax(name: &str) -> Option<&'static str> {
    find_named(name)?.doc.syntax.first().copied()
}

/// Returns all scalar functions.
///
/// ```
/// let functions = serrate::functions::all_scalar();
/// assert!(functions.iter().any(|f| f.name() == "ragged_sum"));
/// ```
pub fn all_scalar() -> Vec<Arc<ScalarUDF>> {
    SCALAR.clone()
}

/// Returns all aggregate functions; their names end in `_agg`.
///
/// ```
/// let functions = serrate::functions::all_aggregate();
/// assert!(functions.iter().all(|f| f.name().ends_with("_agg")));
/// ```
pub fn all_aggregate() -> Vec<Arc<AggregateUDF>> {
    AGGREGATE.clone()
}

/// Returns all functions that take lambdas.
///
/// ```
/// use serrate::functions::{all_aggregate, all_higher_order, all_scalar};
/// assert!(all_scalar().iter().any(|f| f.name() == "ragged_sum"));
/// assert!(all_aggregate().iter().all(|f| f.name().ends_with("_agg")));
/// assert_eq!(all_higher_order()[0].name(), "ragged_map");
/// # Ok::<(), serrate::Error>(())
/// ```
pub fn all_higher_order() -> Vec<Arc<HigherOrderUDF>> {
    vec![Arc::clone(&MAP)]
}

/// Registers all functions in a session.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use datafusion::prelude::SessionContext;
/// # use serrate::datafusion;
/// let mut ctx = SessionContext::new();
/// serrate::functions::register_functions(&mut ctx)?;
/// let out = ctx.sql("SELECT ragged_count([[1, 2], [3]])").await?.collect().await?;
/// assert_eq!(out[0].num_rows(), 1);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns an error if the registry is read-only.
pub fn register_functions(registry: &mut dyn FunctionRegistry) -> Result<()> {
    for f in all_scalar() {
        registry.register_udf(f)?;
    }
    for f in all_aggregate() {
        registry.register_udaf(f)?;
    }
    for f in all_higher_order() {
        registry.register_higher_order_function(f)?;
    }
    Ok(())
}

/// Returns the planners that make operators work on lists, and that turn a list of literals into
/// one literal, because functions such as `densify` accept a list of sizes only if it is a literal.
///
/// These planners must come *before* DataFusion's planners, as [`register_operators`] does.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use serrate::datafusion::execution::SessionStateBuilder;
/// use serrate::datafusion::prelude::SessionContext;
/// use serrate::functions::{expr_planners, register_functions};
/// let state = SessionContext::new().state();
/// let mut planners = expr_planners();
/// planners.extend(state.expr_planners().iter().cloned());
/// let state = SessionStateBuilder::new_from_existing(state).with_expr_planners(planners).build();
/// let mut ctx = SessionContext::new_with_state(state);
/// register_functions(&mut ctx)?;
/// let out = ctx.sql("SELECT make_array(1, 2) * 2").await?.collect().await?;
/// assert_eq!(out[0].num_rows(), 1);
/// # Ok(())
/// # }
/// ```
pub fn expr_planners() -> Vec<Arc<dyn ExprPlanner>> {
    vec![
        Arc::new(expression_planners::LiteralLists),
        Arc::new(expression_planners::ListOperators),
        Arc::new(timestamps::TimestampPlanner),
        Arc::new(long_number::LongNumberPlanner),
    ]
}

/// Makes `+ - * / %`, comparisons with a scalar, `~`, and `AND`/`OR` of masks work on lists, and
/// turns `[256, 64]` into a literal.
///
/// It inserts [`expr_planners`] before the planners of a session.
///
/// Call it once per session, after [`register_functions`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use serrate::datafusion::prelude::SessionContext;
/// use serrate::functions::{expr_planners, register_functions, register_operators};
/// let mut ctx = SessionContext::new();
/// register_functions(&mut ctx)?;
/// register_operators(&ctx)?;
/// assert!(ctx.state().expr_planners().len() > expr_planners().len());
/// let out = ctx.sql("SELECT make_array(1, 2) * 2").await?.collect().await?;
/// assert_eq!(out[0].num_rows(), 1);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Reserved; no error is returned today. After an error, the session is unchanged.
pub fn register_operators(ctx: &SessionContext) -> Result<()> {
    add_operators(ctx);
    Ok(())
}

/// Inserts [`expr_planners`] before the planners of a session.
pub(crate) fn add_operators(ctx: &SessionContext) {
    let state = ctx.state_ref();
    let mut state = state.write();
    let mut planners = expr_planners();
    planners.extend(state.expr_planners().iter().cloned());
    let builder = datafusion::execution::SessionStateBuilder::new_from_existing(state.clone());
    *state = builder.with_expr_planners(planners).build();
}

/// Returns the pages of `docs/functions/` as file name and Markdown: an index, and a page per
/// family.
///
/// ```
/// let pages = serrate::functions::documentation();
/// let (file, text) = &pages[0];
/// assert!(file.ends_with(".md") && text.contains('#'));
/// # Ok::<(), serrate::Error>(())
/// ```
pub fn documentation() -> Vec<(String, String)> {
    let mut index = String::from(PREFACE);
    let mut pages = Vec::new();
    for section in FunctionSection::ALL {
        let mut entries: Vec<_> = DEFS.iter().map(|d| (d.name, d.aliases, &d.doc)).collect();
        entries.push((lambda::NAME, &[], &lambda::DOC));
        entries.extend(aggregate::list_entries().map(|(name, doc)| (name, &[] as &[&str], doc)));
        entries.retain(|(_, _, doc)| doc.section == section);
        entries.sort_by_key(|(name, ..)| *name);
        if entries.is_empty() {
            continue;
        }
        let (label, file) = (section.label(), section.file());
        let _ = writeln!(index, "\n## [{label}]({file})\n");
        index.push_str(&doc::wrap_paragraph(section.description()));
        index.push_str("\n| function | |\n|---|---|\n");
        let mut page = format!("# {label}\n\n{GENERATED}\n");
        page.push_str(&doc::wrap_paragraph(section.description()));
        page.push('\n');
        for (name, aliases, doc) in entries {
            let _ = writeln!(index, "| [`{name}`]({file}#{name}) | {} |", doc.summary());
            doc::write_entry(&mut page, name, aliases, doc);
        }
        while page.ends_with("\n\n") {
            page.pop();
        }
        pages.push((file, page));
    }
    pages.insert(0, ("README.md".to_string(), index));
    pages
}

const GENERATED: &str = "<!-- Generated from the functions; SERRATE_BLESS=1 cargo test --test slt writes it again. -->\n";

const PREFACE: &str = "# SQL functions

<!-- Generated from the functions; SERRATE_BLESS=1 cargo test --test slt writes it again. -->

Axis 0 is the rows, axis 1 the outermost list of a row, and so on. Negative axes count from the
innermost, so -1 is always the axis of the values. A scalar function works within a row, so its axes
begin at 1; the names of aggregates, which combine rows, end in `_agg`. A NULL list is not an empty
list. Lists keep their kind (`List`, `LargeList`); a `FixedSizeList` becomes a `List` unless the
function says otherwise. An argument that determines the type of the result (an axis, the sizes of a
tensor) must be a literal, not a column or a parameter.

`f(x = 3)` compares, and `f(x => 3)` names an argument. DataFusion's `ctx.sql` takes the first form
for a named argument, too: write `f(x == 3)` or `f((x = 3))` there.

The tests run every example.
";
