//! Replaces operators, functions and lambdas whose result DataFusion computes wrongly, for scalars,
//! lists and structs.

pub(in crate::sql) mod chosen_tokens;
pub(in crate::sql) mod computed_lists;
pub(in crate::sql) mod hidden_values;
pub(in crate::sql) mod in_lists;
pub(in crate::sql) mod lambdas;
pub(in crate::sql) mod negations;
pub(in crate::sql) mod nested_order;
pub(in crate::sql) mod similar;
pub(in crate::sql) mod volatile_between;
pub(in crate::sql) mod volatile_coalesce;
pub(in crate::sql) mod xor_pairs;
