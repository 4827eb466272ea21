//! Keeps conditions that can fail, such as `1 / x > 0`, in place, so that they are evaluated only
//! for the rows for which the statement evaluates them.
//!
//! A rewrite that evaluates `1 / x > 0` below a join, or for rows that the condition `x <> 0`
//! drops, makes a valid statement fail. Conditions that cannot fail are *free*: DataFusion pushes
//! them down as usual. Conditions that can fail are *held*: they stay in a filter above the free
//! conditions, wrapped in the function `evaluated_here`, which DataFusion's rules treat as opaque.

mod held;
mod lazy;
mod push;

pub(in crate::sql) use held::is_held;
#[cfg(feature = "cluster")]
pub(in crate::sql) use held::list_held_functions;
pub(in crate::sql) use lazy::make_conditions_lazy;
pub(in crate::sql) use push::push_free_conditions;
