//! Long and deeply nested statements are planned in linear time, or refused. They do not overflow
//! the stack, which would end the process.

use super::*;

/// The name of a kind of statement, and a function that returns such a statement of a size.
type Shape = (&'static str, fn(usize) -> String);

/// Statements whose depth of nesting grows with their size.
const DEEP: [Shape; 25] = [
    ("casts", |n| format!("SELECT 1{}", "::int".repeat(n))),
    ("nested casts", |n| format!("SELECT {}1{}", "CAST(".repeat(n), " AS INT)".repeat(n))),
    ("=", |n| format!("SELECT true{}", " = true".repeat(n))),
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
    ("BETWEEN", |n| format!("SELECT true{}", " BETWEEN false AND true".repeat(n))),
    ("types of arrow_cast", |n| {
        format!("SELECT arrow_cast(NULL, '{}Int64{}')", "List(".repeat(n), ")".repeat(n))
    }),
    ("queries in quotes", |n| {
        format!("SELECT * FROM ragged_explode('SELECT [1] AS x, 1{} AS a')", "::int".repeat(n))
    }),
];

/// Plans every kind of statement on a thread with the stack size of a main thread. A stack overflow
/// would end the process of the tests.
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
async fn refusals_of_deep_statements_name_the_size() {
    let ctx = serrate::sql::session();
    for (statement, named) in [
        (format!("SELECT 1{}", "::int".repeat(20_000)), "20000 casts"),
        (format!("SELECT {}1{}", "(".repeat(5_000), ")".repeat(5_000)), "parentheses"),
        (format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(3_000)), "3000 joins, unions"),
        (format!("SELECT true{}", " = true".repeat(600)), "600 comparisons"),
        (format!("SELECT 1{}", "::int".repeat(600)), "600 casts"),
        (format!("SELECT 1{}", " IS NULL".repeat(600)), "600 casts"),
        (format!("SELECT true{}", " BETWEEN false AND true".repeat(600)), "600 casts"),
        (format!("SELECT {}'1 day'", "INTERVAL ".repeat(600)), "600 casts"),
        (
            format!("SELECT arrow_cast(1, '{}Int64{}')", "List(".repeat(60), ")".repeat(60)),
            "60 nested parentheses",
        ),
        (
            format!("SELECT arrow_cast(1, $${}Int64{}$$)", "List(".repeat(60), ")".repeat(60)),
            "60 nested parentheses",
        ),
        (
            format!("SELECT * FROM ragged_explode('SELECT 1{} AS a')", "::int".repeat(600)),
            "600 casts",
        ),
        (
            format!("SELECT DATE '2020-01-01'{}", " + INTERVAL '1 day'".repeat(600)),
            "too many operators",
        ),
        (
            format!("SELECT {}1{}", "CAST(".repeat(80), " AS INT)".repeat(80)),
            "80 nested parentheses",
        ),
    ] {
        let message = serrate::sql::sql(&ctx, &statement).await.unwrap_err().to_string();
        assert!(message.contains(named) && message.len() < 1_000, "{message}");
    }
}

/// Runs a test on a thread with a stack of 64 MiB, as the command does, because expressions are
/// evaluated recursively.
fn on_deep_stack(test: impl Future<Output = ()> + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(64 << 20).spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(test);
    });
    thread.unwrap().join().unwrap();
}

#[test]
fn long_chains_of_operators_equal_short_ones() {
    on_deep_stack(compare_long_chains());
}

async fn compare_long_chains() {
    let ctx = serrate::sql::session();
    let any = |n: usize| (0..n).map(|i| format!("a = {i}")).collect::<Vec<_>>().join(" OR ");
    let none = |n: usize| (0..n).map(|i| format!("a <> {i}")).collect::<Vec<_>>().join(" AND ");
    let chain =
        |n: usize| (0..n).map(|i| format!("'{}' || s", i % 10)).collect::<Vec<_>>().join(" || ");
    let rows = "(VALUES (5, 'x', [1, 5]), (500, 'y', [2]), (NULL, 'z', NULL)) AS t(a, s, l)";
    let show_rows = async |query: String| {
        let batches = serrate::sql::sql(&ctx, &query).await.unwrap().collect().await.unwrap();
        pretty_format_batches(&batches).unwrap().to_string()
    };
    let found = show_rows(format!("SELECT a FROM {rows} WHERE {}", any(300))).await;
    assert!(found.contains("| 5 ") && !found.contains("500"), "{found}");
    let found = show_rows(format!("SELECT a FROM {rows} WHERE {}", none(300))).await;
    assert!(found.contains("| 500 ") && !found.contains("| 5 "), "{found}");
    let found = show_rows(format!("SELECT {} AS v FROM {rows} WHERE a = 5", chain(200))).await;
    let expected: String = (0..200).map(|i| format!("{}x", i % 10)).collect();
    assert!(found.contains(&expected), "{found}");
    let sum = vec!["a"; 200].join(" + ");
    assert!(show_rows(format!("SELECT {sum} AS v FROM {rows} WHERE a = 5")).await.contains("1000"));
    let masks = (0..100).map(|i| format!("l = {i}")).collect::<Vec<_>>().join(" OR ");
    let found = show_rows(format!("SELECT ragged_all({masks}) AS v FROM {rows} WHERE a = 5")).await;
    assert!(found.contains("true"), "{found}");
    let lists = vec!["l"; 40].join(" + ");
    let found = show_rows(format!("SELECT {lists} FROM {rows} WHERE a = 5")).await;
    assert!(found.contains("[40, 200]") && found.contains(&lists), "{found}");
}

/// Planning these statements would take minutes if its time were quadratic in their length.
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
        select(repeat(2_000, " + ", &|_| "a".into())),
        select(repeat(1_200, " * ", &|i| format!("(a - {i})"))),
        select(repeat(2_000, " + ", &|i| i.to_string())),
        filter(format!("{} > 0", repeat(1_200, " - ", &|_| "a * 0.5".into()))),
        select(repeat(2_000, " || ", &|_| "s".into())),
        filter(repeat(2_000, " OR ", &|i| format!("a = {i}"))),
        filter(repeat(2_000, " AND ", &|i| format!("a <> {i}"))),
        repeat(800, " UNION ALL ", &|i| format!("SELECT {i} AS a")),
        repeat(300, " UNION ", &|i| format!("SELECT {} AS a", i % 7)),
        filter(format!("a IN ({})", repeat(40_000, ", ", &|i| i.to_string()))),
    ] {
        let frame = serrate::sql::sql(&ctx, &statement).await.unwrap();
        let plan = frame.into_optimized_plan();
        assert!(plan.is_ok(), "{:.40}..: {}", statement, plan.unwrap_err());
    }
}

/// The plan has more nested joins than the cooperative budget of a Tokio task has units (128).
#[test]
fn many_joins_are_executed() {
    on_deep_stack(async {
        let ctx = serrate::sql::session();
        let rows = "(VALUES (1, 10), (2, 20)) AS";
        let joins: String =
            (1..=140).map(|i| format!(" LEFT JOIN {rows} t{i}(k, v) ON t0.k = t{i}.k")).collect();
        let query = format!("SELECT sum(t0.v + t140.v) FROM {rows} t0(k, v){joins}");
        assert_eq!(query_int(&ctx, &query).await, 60);
    });
}

/// A long chain of arithmetic becomes one call. Its values, type and name are those of the
/// operators.
#[test]
fn long_arithmetic_equals_that_of_operators() {
    // Stock DataFusion recurses as deep as a chain is long.
    on_deep_stack(compare_long_arithmetic());
}

async fn compare_long_arithmetic() {
    let ctx = serrate::sql::session();
    let stock = SessionContext::new();
    let rows = "(SELECT arrow_cast(i, 'Int32') AS i, arrow_cast(u, 'UInt8') AS u, f, arrow_cast(d, 'Decimal128(10, 2)') AS d
        FROM (VALUES (1, 2, 0.1, 1.25), (2147483647, 200, 1e308, 7.5), (-3, 0, NULL, 2), (NULL, 7, 0.3, NULL)) AS t(i, u, f, d))";
    let shown = async |ctx: &SessionContext, query: &str| {
        let frame = match std::ptr::eq(ctx, &raw const stock) {
            true => ctx.sql(query).await?,
            false => serrate::sql::sql(ctx, query).await?,
        };
        let types: Vec<_> = frame.schema().fields().iter().map(|f| f.data_type().clone()).collect();
        let batches = frame.collect().await?;
        let text = pretty_format_batches(&batches)?.to_string();
        Ok::<_, datafusion::error::DataFusionError>((types, text))
    };
    let repeat = |n: usize, term: &dyn Fn(usize) -> &'static str| {
        (1..n).fold(term(0).to_owned(), |sum, at| format!("{sum} {}", term(at)))
    };
    for (name, chain) in [
        ("overflow", repeat(200, &|at| if at == 0 { "i" } else { "+ i" })),
        (
            "floats",
            repeat(150, &|at| ["f", "+ i", "- f", "+ 0.1"][if at == 0 { 0 } else { 1 + at % 3 }]),
        ),
        (
            "mixed types",
            repeat(140, &|at| if at == 0 { "u" } else { ["+ i", "- u", "+ 3"][at % 3] }),
        ),
        (
            "products within",
            repeat(400, &|at| {
                if at == 0 { "f" } else { ["+ i * u", "- u / 3", "+ f % 0.7"][at % 3] }
            }),
        ),
        ("decimals", repeat(90, &|at| if at == 0 { "d" } else { "+ d" })),
        ("bits", repeat(120, &|at| if at == 0 { "i" } else { ["| 1024", "| u", "| 4"][at % 3] })),
        ("literals", repeat(300, &|at| if at == 0 { "1" } else { ["+ 2", "- 3", "* 1"][at % 3] })),
        (
            "a string",
            repeat(80, &|at| {
                if at == 0 {
                    "u"
                } else if at == 70 {
                    "+ '1'"
                } else {
                    "+ u"
                }
            }),
        ),
        (
            "NULL",
            repeat(80, &|at| {
                if at == 0 {
                    "u"
                } else if at == 70 {
                    "+ NULL"
                } else {
                    "+ u"
                }
            }),
        ),
        (
            "dates",
            repeat(80, &|at| if at == 0 { "DATE '2020-01-01'" } else { "+ INTERVAL '1 day'" }),
        ),
        (
            "no times",
            repeat(80, &|at| {
                if at == 0 {
                    "i"
                } else if at == 40 {
                    "/ (u - 2)"
                } else {
                    "+ i"
                }
            }),
        ),
    ] {
        for query in [
            format!("SELECT {chain} AS v FROM {rows}"),
            format!("SELECT {chain} FROM (SELECT * FROM {rows} LIMIT 1)"),
            format!("SELECT count(*) AS n FROM {rows} WHERE {chain} IS NOT NULL GROUP BY {chain}"),
        ] {
            match (shown(&ctx, &query).await, shown(&stock, &query).await) {
                (Ok(ours), Ok(theirs)) if query.contains("GROUP BY") => {
                    assert_eq!(ours.1.len(), theirs.1.len(), "{name}");
                }
                (Ok(ours), Ok(theirs)) => assert_eq!(ours.0, theirs.0, "{name}"),
                (Err(_), Err(_)) => {}
                (ours, theirs) => panic!("{name}: {ours:?} {theirs:?}"),
            }
        }
        let query = format!("SELECT {chain} AS v FROM {rows}");
        if let (Ok(ours), Ok(theirs)) = (shown(&ctx, &query).await, shown(&stock, &query).await) {
            assert_eq!(ours.1, theirs.1, "{name}");
        }
    }
    let heading = repeat(100, &|at| if at == 0 { "i" } else { "+ i" });
    let frame = serrate::sql::sql(&ctx, &format!("SELECT {heading} FROM {rows}")).await.unwrap();
    assert_eq!(*frame.schema().field(0).name(), heading);
}

/// Deep expressions are planned and evaluated on threads of a Tokio runtime with the default stack
/// size.
#[test]
fn deep_expressions_are_evaluated_on_small_stacks() {
    let small = std::thread::Builder::new().stack_size(2 << 20).spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let ctx = serrate::sql::session();
            let rows = "(VALUES (5, [1, 5], true), (7, [2], false)) AS t(a, l, b)";
            for (what, expected) in [
                (vec!["a"; 2_000].join(" + "), "10000"),
                (format!("ragged_sum({})", vec!["l"; 100].join(" + ")), "600"),
                (format!("ragged_sum(l){}", " + ragged_sum(l) * 2".repeat(500)), "6006"),
                (format!("{}a", "- ".repeat(40)), "5"),
                (format!("a{}", "::bigint::int".repeat(50)), "5"),
                (format!("b{}", " = b".repeat(100)), "true"),
                (format!("a{}", "::bigint".repeat(120)), "5"),
                (format!("a IS NOT NULL{}", " IS NOT NULL".repeat(60)), "true"),
                (format!("now(){} IS NULL", " AT TIME ZONE 'UTC'".repeat(60)), "false"),
                (format!("{} IS NULL", ["l[1]::int"; 300].join(" + ")), "false"),
            ] {
                let query = format!("SELECT {what} AS v FROM {rows} WHERE a = 5");
                let frame = serrate::sql::sql(&ctx, &query).await.unwrap();
                let batches = frame.collect().await.unwrap();
                let shown = pretty_format_batches(&batches).unwrap().to_string();
                assert!(shown.contains(&format!("| {expected} ")), "{what:.40}..: {shown}");
            }
        });
    });
    small.unwrap().join().unwrap();
}

/// Nested unions have the rows, the order and the types of their inputs.
#[tokio::test]
async fn nested_unions_keep_rows_order_and_types() {
    let ctx = serrate::sql::session();
    let shown = async |query: &str| {
        let batches = serrate::sql::sql(&ctx, query).await.unwrap().collect().await.unwrap();
        let field = batches[0].schema().field(0).clone();
        let text = pretty_format_batches(&batches).unwrap().to_string();
        (field.data_type().clone(), text.matches("| ").count(), text)
    };
    // FLOAT cannot represent 16777217, so the result depends on which two inputs are united first.
    let wide = "SELECT 16777217 AS a UNION ALL SELECT arrow_cast(1, 'Float32') UNION ALL SELECT arrow_cast(2, 'Float64')";
    let stock = SessionContext::new().sql(wide).await.unwrap().collect().await.unwrap();
    assert_eq!(shown(wide).await.2, pretty_format_batches(&stock).unwrap().to_string());
    let (_, rows, _) = shown(
        "SELECT 1 AS a UNION ALL SELECT 2 UNION SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 2",
    )
    .await;
    assert_eq!(rows, 5);
    let (_, rows, _) =
        shown("SELECT 1 AS a UNION SELECT 2 UNION SELECT 1 UNION (SELECT 2 UNION ALL SELECT 3)")
            .await;
    assert_eq!(rows, 4);
    let all = "(SELECT 1 AS a UNION ALL SELECT 2) UNION ALL ((SELECT 3 UNION ALL SELECT 4) UNION ALL SELECT 5)";
    assert_eq!(
        query_int(&ctx, &format!("SELECT array_to_string(array_agg(a), '')::int FROM ({all})"))
            .await,
        12_345
    );
    let below = "SELECT count(*) FROM (VALUES (1), (9)) AS t(a) WHERE a IN (SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3)";
    assert_eq!(query_int(&ctx, below).await, 1);
}

/// When this test fails, `serrate_deep_stacks` can be removed. The statement runs in a child
/// process, which the overflow ends.
#[cfg(unix)]
#[test]
fn stock_deep_expressions_still_overflow_the_stack() {
    const CHILD: &str = "SERRATE_TEST_DEEP_EXPRESSION";
    let name = "depth::stock_deep_expressions_still_overflow_the_stack";
    if std::env::var_os(CHILD).is_none() {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        let child = child.args(["--exact", name, "--nocapture"]).env(CHILD, "1").output().unwrap();
        let error = String::from_utf8_lossy(&child.stderr);
        assert!(child.status.code().is_none(), "no signal has ended the process: {error}");
        return;
    }
    let small = std::thread::Builder::new().stack_size(2 << 20).spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let sum = vec!["a"; 4_000].join(" + ");
        let sql = format!("SELECT {sum} AS v FROM (VALUES (5)) AS t(a)");
        runtime.block_on(stock_batches(&SessionContext::new(), &sql)).unwrap();
    });
    small.unwrap().join().unwrap();
}
