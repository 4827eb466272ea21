//! Statements that are long or deep: planned in time that grows as they do, or refused, and never the end of the process.

use super::*;

/// A shape of statement, by its size.
type Shape = (&'static str, fn(usize) -> String);

/// Shapes that go as deep as they are long.
const DEEP: [Shape; 20] = [
    ("casts", |n| format!("SELECT 1{}", "::int".repeat(n))),
    ("signs", |n| format!("SELECT {}1", "- ".repeat(n))),
    ("NOT", |n| format!("SELECT {}true", "NOT ".repeat(n))),
    ("IS NULL", |n| format!("SELECT 1{}", " IS NULL".repeat(n))),
    ("+", |n| format!("SELECT 1{}", " + 1".repeat(n))),
    ("+ of lists", |n| format!("SELECT [1]{}", " + [1]".repeat(n.min(400)))),
    ("parentheses", |n| format!("SELECT {}1{}", "(".repeat(n), ")".repeat(n))),
    ("CASE", |n| format!("SELECT {}1{}", "CASE WHEN true THEN ".repeat(n), " END".repeat(n))),
    ("calls", |n| format!("SELECT {}1{}", "abs(".repeat(n), ")".repeat(n))),
    ("calls of ours", |n| format!("SELECT {}[1]{}", "ragged_neg(".repeat(n), ")".repeat(n))),
    ("arrays", |n| format!("SELECT {}1{}", "[".repeat(n), "]".repeat(n))),
    ("subscripts", |n| {
        format!("SELECT {}1{}{}", "[".repeat(n.min(40)), "]".repeat(n.min(40)), "[1]".repeat(n))
    }),
    ("subqueries", |n| format!("SELECT {}1{}", "(SELECT ".repeat(n), ")".repeat(n))),
    ("queries in FROM", |n| {
        format!("{}SELECT 1 AS a{}", "SELECT * FROM (".repeat(n), ") t".repeat(n))
    }),
    ("lambdas", |n| {
        format!("SELECT {}1{}", "array_transform([1], lambda v: ".repeat(n), ")".repeat(n))
    }),
    ("LIKE", |n| format!("SELECT 'a'{}", " LIKE 'a'".repeat(n))),
    ("AND", |n| format!("SELECT true{}", " AND true".repeat(n))),
    ("||", |n| format!("SELECT 'a'{}", " || 'a'".repeat(n))),
    ("AT TIME ZONE", |n| format!("SELECT now(){}", " AT TIME ZONE 'UTC'".repeat(n))),
    ("EXPLAIN", |n| format!("{}SELECT 1", "EXPLAIN ".repeat(n))),
];

/// Every shape, in a thread as large as the first one of a process: what overflows its stack ends the tests.
#[test]
fn deep_statements_are_planned_or_refused() {
    for (name, shape) in DEEP {
        for size in [10, 100, 20_000] {
            let statement = shape(size);
            let small = std::thread::Builder::new().stack_size(8 << 20);
            let planned = small.spawn(move || {
                let runtime =
                    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                let ctx = serrate::sql::session();
                runtime.block_on(async {
                    let done = serrate::sql::sql(&ctx, &statement).await;
                    done.map(|_| ()).map_err(|e| e.strip_backtrace())
                })
            });
            let planned =
                planned.unwrap().join().unwrap_or_else(|_| panic!("{name} of {size} panics"));
            if let Err(message) = planned {
                assert!(!message.is_empty() && message.len() < 100_000, "{name} of {size}");
                let refused = name == "EXPLAIN" && message.contains("Nested EXPLAINs");
                assert!(size > 10 || refused, "{name} of {size}: {message}");
            }
        }
    }
}

#[tokio::test]
async fn what_is_too_deep_is_said_with_its_size() {
    let ctx = serrate::sql::session();
    for (statement, named) in [
        (format!("SELECT 1{}", "::int".repeat(20_000)), "20000 operators"),
        (format!("SELECT {}1{}", "(".repeat(5_000), ")".repeat(5_000)), "parentheses"),
        (format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(3_000)), "3000 joins, unions"),
    ] {
        let message = serrate::sql::sql(&ctx, &statement).await.unwrap_err().to_string();
        assert!(message.contains(named) && message.len() < 1_000, "{message}");
    }
}

/// Runs a test on a stack like that of the command: expressions are evaluated as deep as they are written.
fn on_deep_stack(test: impl Future<Output = ()> + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(64 << 20).spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(test);
    });
    thread.unwrap().join().unwrap();
}

#[test]
fn long_chains_mean_what_short_ones_do() {
    on_deep_stack(compare_long_chains());
}

async fn compare_long_chains() {
    let ctx = serrate::sql::session();
    let any = |n: usize| (0..n).map(|i| format!("a = {i}")).collect::<Vec<_>>().join(" OR ");
    let none = |n: usize| (0..n).map(|i| format!("a <> {i}")).collect::<Vec<_>>().join(" AND ");
    let text =
        |n: usize| (0..n).map(|i| format!("'{}' || s", i % 10)).collect::<Vec<_>>().join(" || ");
    let rows = "(VALUES (5, 'x', [1, 5]), (500, 'y', [2]), (NULL, 'z', NULL)) AS t(a, s, l)";
    let one = async |query: String| {
        let batches = serrate::sql::sql(&ctx, &query).await.unwrap().collect().await.unwrap();
        pretty_format_batches(&batches).unwrap().to_string()
    };
    let found = one(format!("SELECT a FROM {rows} WHERE {}", any(300))).await;
    assert!(found.contains("| 5 ") && !found.contains("500"), "{found}");
    let found = one(format!("SELECT a FROM {rows} WHERE {}", none(300))).await;
    assert!(found.contains("| 500 ") && !found.contains("| 5 "), "{found}");
    let found = one(format!("SELECT {} AS v FROM {rows} WHERE a = 5", text(200))).await;
    let expected: String = (0..200).map(|i| format!("{}x", i % 10)).collect();
    assert!(found.contains(&expected), "{found}");
    let sum = vec!["a"; 200].join(" + ");
    assert!(one(format!("SELECT {sum} AS v FROM {rows} WHERE a = 5")).await.contains("1000"));
    let masks = (0..100).map(|i| format!("l = {i}")).collect::<Vec<_>>().join(" OR ");
    let found = one(format!("SELECT ragged_all({masks}) AS v FROM {rows} WHERE a = 5")).await;
    assert!(found.contains("true"), "{found}");
    let lists = vec!["l"; 40].join(" + ");
    let found = one(format!("SELECT {lists} FROM {rows} WHERE a = 5")).await;
    assert!(found.contains("[40, 200]") && found.contains(&lists), "{found}");
}

/// Statements that would take minutes to plan if the time grew with the square of their length.
#[test]
fn long_statements_are_planned() {
    on_deep_stack(plan_long_statements());
}

async fn plan_long_statements() {
    let ctx = serrate::sql::session();
    let rows = "(VALUES (1, 'x')) AS t(a, s)";
    let repeat = |n: usize, between: &str, term: &dyn Fn(usize) -> String| {
        (0..n).map(term).collect::<Vec<_>>().join(between)
    };
    let select = |what: String| format!("SELECT {what} AS v FROM {rows}");
    let filter = |what: String| format!("SELECT a FROM {rows} WHERE {what}");
    for statement in [
        // Arithmetic keeps its order, so that it is as deep as it is long.
        select(repeat(300, " + ", &|_| "a".into())),
        select(repeat(2_000, " || ", &|_| "s".into())),
        filter(repeat(2_000, " OR ", &|i| format!("a = {i}"))),
        filter(repeat(2_000, " AND ", &|i| format!("a <> {i}"))),
        filter(format!("a IN ({})", repeat(40_000, ", ", &|i| i.to_string()))),
    ] {
        let frame = serrate::sql::sql(&ctx, &statement).await.unwrap();
        let plan = frame.into_optimized_plan();
        assert!(plan.is_ok(), "{:.40}..: {}", statement, plan.unwrap_err());
    }
}
