//! Helpers that read and rewrite plans, expressions and syntax trees. All other modules of `sql`
//! may use them, and they use none of these modules.

pub(in crate::sql) mod blocking;
pub(in crate::sql) mod boxed_methods;
pub(in crate::sql) mod compared_operands;
pub(in crate::sql) mod decimal_texts;
pub(in crate::sql) mod deep_stack;
pub(in crate::sql) mod expression_parts;
pub(in crate::sql) mod interval_texts;
pub(in crate::sql) mod marks;
pub(in crate::sql) mod measured_lists;
pub(in crate::sql) mod node_types;
pub(in crate::sql) mod nullable_mark;
pub(in crate::sql) mod outer_columns;
pub(in crate::sql) mod plan_facts;
pub(in crate::sql) mod plan_nodes;
pub(in crate::sql) mod subquery_parts;
pub(in crate::sql) mod syntax;
pub(in crate::sql) mod tokens;
