//! Plans subqueries that DataFusion cannot plan: subqueries as conditions and as values, correlated
//! subqueries and LATERAL. Also lets several nodes of a plan share rows, such as those of a CTE.

pub(in crate::sql) mod case_guards;
pub(in crate::sql) mod correlated;
pub(in crate::sql) mod empty_queries;
pub(in crate::sql) mod grouped_outer;
pub(in crate::sql) mod only_row;
pub(in crate::sql) mod rows_in;
pub(in crate::sql) mod shared_rows;
pub(in crate::sql) mod subquery_conditions;
