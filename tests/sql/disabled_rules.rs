//! `SET serrate.disabled_rules`: every rule can be switched off by its name.

use serrate::sql::{SerrateOptions, session};

use super::*;

/// A row of the table of rules in `docs/internals/sql.md`.
struct Rule {
    name: &'static str,
    /// Whether only the speed of queries depends on the rule.
    is_optimization: bool,
}

/// Rules that only speed up queries, but have no setting `serrate.rule.NAME`.
const FASTER: [&str; 2] = ["serrate_parquet_fields", "serrate_parquet_lists"];

/// Rules that cannot be disabled.
const PROTECTED: [&str; 4] = [
    "serrate_plain_changes",
    "serrate_yielding_joins",
    "serrate_deep_stacks",
    "serrate_named_files",
];

/// Returns the rules that can be disabled, as `docs/internals/sql.md` lists them.
fn list_rules() -> Vec<Rule> {
    let page = include_str!("../../docs/internals/sql.md");
    let (_, table) = page.split_once("<!-- rules -->").unwrap();
    let (table, _) = table.split_once("<!-- end of rules -->").unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `"));
    let rules = rows.map(|row| {
        let (name, rest) = row.split_once('`').unwrap();
        let is_optimization = rest.contains("`serrate.rule.") || FASTER.contains(&name);
        Rule { name, is_optimization }
    });
    let rules: Vec<Rule> = rules.filter(|rule| !PROTECTED.contains(&rule.name)).collect();
    assert!(rules.len() > 80, "{} rules", rules.len());
    rules
}

async fn disable(ctx: &SessionContext, names: &str) {
    query_batches(ctx, &format!("SET serrate.disabled_rules = '{names}'")).await.unwrap();
}

#[tokio::test]
async fn disabled_rules_are_set_shown_and_reset() {
    let ctx = session();
    let shown = async || query_text(&ctx, "SHOW serrate.disabled_rules").await;
    disable(&ctx, " serrate_xor_pairs ,sortlists,, keep_in_lists").await;
    let text = shown().await;
    assert!(text.contains(" SortLists, keep_in_lists, serrate_xor_pairs "), "{text}");
    let options = SerrateOptions::of(ctx.state().config_options()).clone();
    assert!(options.disabled_rules.contains("SortLists"));
    assert!(!options.disabled_rules.contains("serrate_float_keys"));
    // A refused value leaves the setting as it was.
    for (names, expected) in [
        (
            "serrate_float_keys, no_such_rule",
            "there is no rule no_such_rule; docs/internals/sql.md",
        ),
        ("xor_pairs", "did you mean serrate_xor_pairs?"),
        ("serrate_deep_stacks", "overflow the stack"),
        ("serrate_float_keys,serrate_plain_changes", "serrate_plain_changes cannot be disabled"),
    ] {
        let e = error(&ctx, &format!("SET serrate.disabled_rules = '{names}'")).await;
        assert!(e.contains(expected), "{e}");
    }
    assert_eq!(shown().await, text);
    query_batches(&ctx, "RESET serrate.disabled_rules").await.unwrap();
    assert_eq!(*SerrateOptions::of(ctx.state().config_options()), SerrateOptions::default());
    for name in PROTECTED {
        let e = error(&ctx, &format!("SET serrate.disabled_rules = '{name}'")).await;
        assert!(e.contains(name) && e.contains("cannot be disabled"), "{e}");
    }
}

/// Disables one rule of each kind: an analyzer rule, an optimizer rule, a rule that wraps a rule of
/// DataFusion, and a physical rule.
#[tokio::test]
async fn a_disabled_rule_has_no_effect() {
    let dir = tempfile::tempdir().unwrap();
    let parquet = display_path(&dir.path().join("t.parquet"));
    let ctx = session();
    query_batches(&ctx, &format!("COPY (SELECT 1 AS id, [1, 2] AS x) TO '{parquet}'"))
        .await
        .unwrap();
    let lists = format!("EXPLAIN SELECT ragged_sum(x) FROM '{parquet}'");
    let cases = [
        (
            "serrate_similar_patterns",
            "SELECT count(*) FROM (VALUES ('abc')) v(s) WHERE s SIMILAR TO 'b'",
            "0",
            "1",
        ),
        ("serrate_xor_pairs", "SELECT count(i ^ i) FROM (VALUES (1), (NULL)) v(i)", "1", "2"),
        (
            "keep_in_lists",
            "SELECT count(*) FROM (VALUES (1), (NULL), (20)) v(x)
             WHERE x NOT IN (1, 2, 3, 4, 6) OR x NOT IN (10, 11, 12, 13, 14)",
            "2",
            "3",
        ),
        ("serrate_parquet_lists", lists.as_str(), "lists=[x]", ""),
    ];
    for (name, sql, with, without) in cases {
        let found = rows_or_error(&ctx, sql).await;
        assert!(found.contains(with), "{sql}\n{found}");
        disable(&ctx, name).await;
        let found = rows_or_error(&ctx, sql).await;
        assert!(found.contains(without) && !found.contains(with), "without {name}: {sql}\n{found}");
        disable(&ctx, "").await;
        let again = rows_or_error(&ctx, sql).await;
        assert!(again.contains(with), "{sql}\n{again}");
        // A setting of another session has no effect.
        disable(&session(), name).await;
        let again = rows_or_error(&ctx, sql).await;
        assert!(again.contains(with), "{sql}\n{again}");
    }
}

/// Returns statements whose order of rows is determined, so that any two runs have the same output.
fn list_statements(nrt: &str, parquet: &str) -> Vec<String> {
    let mut all = [
        "SELECT k, count(*) AS n, sum(f) AS s FROM t GROUP BY k ORDER BY k",
        "SELECT a.k, b.f, ragged_sum(a.x) AS s FROM t a JOIN t b ON a.k = b.k WHERE b.f > 1
         ORDER BY a.k, b.f, s LIMIT 4",
        "SELECT k, ragged_count(x) AS n FROM t WHERE f IN (SELECT f FROM t WHERE k = 2) ORDER BY n",
        "SELECT f, row_number() OVER (PARTITION BY k ORDER BY f) AS r FROM t
         ORDER BY f LIMIT 2 OFFSET 1",
        "SELECT k FROM t UNION ALL SELECT ragged_max(x) FROM t ORDER BY 1",
    ]
    .map(str::to_owned)
    .to_vec();
    for path in [nrt, parquet] {
        all.push(format!(
            "SELECT id, ragged_lengths(code) AS n, ragged_sum(ragged_filter(code, code > 15)) AS s
             FROM '{path}' WHERE id > 3 AND ragged_any(code > 20) ORDER BY id LIMIT 5 OFFSET 1"
        ));
    }
    all
}

#[tokio::test]
async fn statements_run_with_any_one_rule_disabled() {
    let dir = tempfile::tempdir().unwrap();
    let nrt = display_path(&dir.path().join("t.nrt"));
    let parquet = display_path(&dir.path().join("t.parquet"));
    write_table(Path::new(&nrt), &make_numbered_table(1, 30));
    let ctx = create_parallel_session();
    for sql in [
        "CREATE TABLE t AS SELECT * FROM (VALUES
         (1, 1.5, [1, 2]), (2, 0.5, [3]), (2, 2.5, [4, 5, 6])) v(k, f, x)",
        format!("COPY (SELECT * FROM '{nrt}') TO '{parquet}'").as_str(),
    ] {
        query_batches(&ctx, sql).await.unwrap();
    }
    let statements = list_statements(&nrt, &parquet);
    let mut expected = Vec::new();
    for sql in &statements {
        expected.push(query_text(&ctx, sql).await);
    }
    let rules = list_rules();
    let mut wrong = String::new();
    for rule in &rules {
        disable(&ctx, rule.name).await;
        for (sql, expected) in statements.iter().zip(&expected) {
            match query_batches(&ctx, sql).await {
                Ok(found) => {
                    let found = pretty_format_batches(&found).unwrap().to_string();
                    if rule.is_optimization && found != *expected {
                        wrong += &format!("without {}: {sql}\n{found}\n", rule.name);
                    }
                }
                Err(e) => wrong += &format!("without {}: {sql}\n{e}\n", rule.name),
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    let optimizations = rules.iter().filter(|rule| rule.is_optimization);
    let names: Vec<&str> = optimizations.map(|rule| rule.name).collect();
    assert_eq!(names.len(), 12, "{names:?}");
    disable(&ctx, &names.join(", ")).await;
    for (sql, expected) in statements.iter().zip(&expected) {
        assert_eq!(query_text(&ctx, sql).await, *expected, "without {names:?}: {sql}");
    }
}
