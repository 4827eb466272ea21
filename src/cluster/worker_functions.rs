//! The functions of workers: plans for workers contain only the names of functions.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::{FunctionRegistry, SessionState, TaskContext};
use datafusion::logical_expr::ScalarUDF;

use crate::sql::portable::list_hidden_functions;

/// A new session. Workers have its functions, and none that a program registers in its sessions.
static NEW_SESSION: LazyLock<SessionState> = LazyLock::new(|| crate::sql::session().state());

/// Registers the functions of a worker in `state`: those of a new session with the settings of
/// `state`, and those that plans contain although statements cannot name them.
pub(super) fn register_functions(state: &mut SessionState) -> Result<()> {
    copy_functions(&NEW_SESSION, state)?;
    for function in list_hidden_functions() {
        state.register_udf(function)?;
    }
    Ok(())
}

/// Returns `context` with the functions that a worker has for a query with the settings of
/// `context`.
pub(super) fn replace_functions(context: &TaskContext) -> TaskContext {
    let new = &*NEW_SESSION;
    let options = context.session_config().options();
    let adapted = new.scalar_functions().iter();
    let mut functions: HashMap<String, Arc<ScalarUDF>> =
        adapted.map(|(name, function)| (name.clone(), adapt_function(function, options))).collect();
    functions.extend(list_hidden_functions().into_iter().map(|f| (f.name().to_owned(), f)));
    TaskContext::new(
        context.task_id(),
        context.session_id(),
        context.session_config().clone(),
        functions,
        new.higher_order_functions().clone(),
        new.aggregate_functions().clone(),
        new.window_functions().clone(),
        context.runtime_env(),
    )
}

/// Returns `function` as it is in a session with the settings `options`. `SET TIME ZONE` replaces
/// functions of a session, such as `to_timestamp`, which reads strings without a zone as times in
/// this zone.
fn adapt_function(function: &Arc<ScalarUDF>, options: &ConfigOptions) -> Arc<ScalarUDF> {
    match function.inner().with_updated_config(options) {
        Some(adapted) => Arc::new(adapted),
        None => Arc::clone(function),
    }
}

/// Copies all functions of the session `from` to the session `to`, adapted to the settings of `to`.
/// If the name of a function is also an alias of another function, the function with this name
/// wins.
fn copy_functions(from: &SessionState, to: &mut SessionState) -> Result<()> {
    let options = Arc::clone(to.config_options());
    for own in [false, true] {
        for (key, function) in from.scalar_functions() {
            if (key == function.name()) == own {
                to.register_udf(adapt_function(function, &options))?;
            }
        }
        for (key, function) in from.aggregate_functions() {
            if (key == function.name()) == own {
                to.register_udaf(Arc::clone(function))?;
            }
        }
        for (key, function) in from.window_functions() {
            if (key == function.name()) == own {
                to.register_udwf(Arc::clone(function))?;
            }
        }
        for (key, function) in from.higher_order_functions() {
            if (key == function.name()) == own {
                to.register_higher_order_function(Arc::clone(function))?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use datafusion::execution::SessionStateBuilder;
    use datafusion::prelude::SessionConfig;

    use super::*;

    fn build_worker(config: SessionConfig) -> SessionState {
        let builder = SessionStateBuilder::new().with_config(config).with_default_features();
        let mut state = builder.build();
        register_functions(&mut state).unwrap();
        state
    }

    #[test]
    fn workers_have_the_functions_of_sessions() {
        let session = crate::sql::session();
        let from = session.state();
        let to = build_worker(session.copied_config());
        let hidden = list_hidden_functions();
        for (name, function) in from.scalar_functions() {
            // `dok_get` and `dok_contains` have the table names of their session.
            let is_hidden = hidden.iter().any(|f| f.name() == function.name());
            let is_other = is_hidden || name.starts_with("dok_");
            assert!(is_other || to.scalar_functions().get(name) == Some(function), "{name}");
        }
        for (name, function) in from.aggregate_functions() {
            assert!(to.aggregate_functions().get(name) == Some(function), "{name}");
        }
        for (name, function) in from.window_functions() {
            assert!(to.window_functions().get(name) == Some(function), "{name}");
        }
        for name in from.higher_order_functions().keys() {
            assert!(to.higher_order_functions().contains_key(name), "{name}");
        }
    }

    #[tokio::test]
    async fn functions_of_workers_have_the_time_zone_of_the_session() {
        let session = crate::sql::session();
        let set = "SET datafusion.execution.time_zone = 'Europe/Berlin'";
        crate::sql::sql(&session, set).await.unwrap().collect().await.unwrap();
        let state = session.state();
        let worker = build_worker(session.copied_config());
        let context = replace_functions(&state.task_ctx());
        for name in ["to_timestamp", "to_timestamp_millis"] {
            let here = &state.scalar_functions()[name];
            assert!(here != &NEW_SESSION.scalar_functions()[name], "{name}");
            assert!(here == &worker.scalar_functions()[name], "{name}");
            assert!(here == &context.scalar_functions()[name], "{name}");
        }
    }
}
