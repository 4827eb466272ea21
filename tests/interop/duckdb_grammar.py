"""Generates random tables, and random statements that both DuckDB and Serrate can run.

A statement is a tree of nodes. A node is a sequence of strings and nodes. A node with a type is a value of that type;
a node with columns is a query of these columns. A smaller statement replaces a node by one of its descendants of the
same type, or omits an optional node; `smaller` lists the trees that are one such step smaller.

If the syntax of the two differs, a string has both forms: `«ours¦theirs»` (see `spelling`).

Types: integer i, float f, string s, boolean b, date d, timestamp t, decimal n, struct r, and `l` before the type of
the elements of a list.
"""

import datetime
import decimal
import random
import re

import pyarrow as pa

SINGLE = "ifsbdtn"
COLUMNS = {
    "id": "i", "k": "i", "v": "i", "z": "i", "f": "f", "s": "s", "b": "b", "d": "d", "t": "t", "n": "n",
    "li": "li", "lf": "lf", "ls": "ls", "ll": "ll",
}
ARROW = {
    "i": pa.int64(), "f": pa.float64(), "s": pa.string(), "b": pa.bool_(), "d": pa.date32(),
    "t": pa.timestamp("us"), "n": pa.decimal128(12, 2), "li": pa.list_(pa.int64()),
    "lf": pa.list_(pa.float64()), "ls": pa.list_(pa.string()), "ll": pa.list_(pa.list_(pa.int64())),
}
# A struct of an integer and a string.
STRUCT = "«named_struct('a', ¦struct_pack(a := »{i}«, 'b', ¦, b := »{s}«)¦)»"
NULLS = {
    "i": "NULL::BIGINT", "f": "NULL::DOUBLE", "s": "NULL::VARCHAR", "b": "NULL::BOOLEAN", "d": "NULL::DATE",
    "t": "NULL::TIMESTAMP", "n": "NULL::DECIMAL(12,2)", "li": "NULL::BIGINT[]", "lf": "NULL::DOUBLE[]",
    "ls": "NULL::VARCHAR[]", "ll": "NULL::BIGINT[][]", "r": "CASE WHEN false THEN " + STRUCT.format(i="1::BIGINT", s="'a'") + " END",
}
LITERALS = {
    "i": ["1", "0", "2", "-1", "7"],
    "f": ["0.5e0", "0e0", "-1.5e0", "'-0.0'::DOUBLE", "'NaN'::DOUBLE", "'inf'::DOUBLE", "'-inf'::DOUBLE"],
    "s": ["'a'", "'ab'", "''", "'it''s'", "'äb'", "'%'"],
    "b": ["true", "false"],
    "d": ["DATE '2020-02-29'", "DATE '1600-01-01'", "DATE '2999-12-31'", "DATE '1969-12-31'"],
    "t": ["TIMESTAMP '2020-02-29 12:00:00'", "TIMESTAMP '1600-01-01 00:00:01'", "TIMESTAMP '2999-12-31 23:59:59'"],
    "n": ["1.50::DECIMAL(12,2)", "-0.25::DECIMAL(12,2)", "0::DECIMAL(12,2)"],
    "li": ["[1, 2]", "[3, NULL, 1]", "[0]"], "lf": ["[1.5e0, NULL]", "['NaN'::DOUBLE, 0e0]"],
    "ls": ["['a', 'b']", "['b', NULL]"], "ll": ["[[1], [2, 3]]", "[[1, NULL]]"],
    "r": [STRUCT.format(i="1::BIGINT", s="'a'"), STRUCT.format(i="2::BIGINT", s="NULL::VARCHAR")],
}

OF_ANY = ["CASE WHEN {b} THEN {Z} ELSE {Z} END", "CASE WHEN {b} THEN {Z} END", "coalesce({Z}, {Z})"]
OF_SINGLE = ["nullif({Z}, {Z})", "CASE {Z} WHEN {Z} THEN {Z} WHEN {Z} THEN {Z} ELSE {Z} END"]
OF_ORDERED = ["greatest({Z}, {Z})", "least({Z}, {Z}, {Z})"]
TESTS = ["{Z} = {Z}", "{Z} <> {Z}", "{Z} IS NULL", "{Z} IS NOT NULL", "{Z} IS DISTINCT FROM {Z}", "{Z} IS NOT DISTINCT FROM {Z}"]
COMPARISONS = [
    "{Z} < {Z}", "{Z} <= {Z}", "{Z} > {Z}", "{Z} >= {Z}", "{Z} BETWEEN {Z} AND {Z}", "{Z} NOT BETWEEN {Z} AND {Z}",
    "{Z} IN ({Z}, {Z})", "{Z} NOT IN ({Z}, {Z}, {Z})", "{Z} IN ({Z}, NULL)", "{Z} NOT IN ({Z}, NULL)",
]
TEMPLATES = {
    "i": """{i} + {i}; {i} - {i}; -{i}; {i} * 3; {i} // 4; {i} // -3; {i} % 5; {i} % -3; abs({i}); length({s})
        strpos({s}, {s}); ascii({s}); CAST({b} AS BIGINT); extract(year FROM {d}); extract(month FROM {t})
        date_part('day', {d}); date_part('hour', {t}); date_part('week', {d}); extract(doy FROM {d}); len({li})
        len({ls}); {li}[1]; {li}[-1]; {li}[{i}]; TRY_CAST({s} AS BIGINT); {i} & 6; {i} | 1; bit_length({s})
        CASE WHEN {i:x} <> 0 THEN 12 // {=x} END; CASE WHEN {i:x} = 0 THEN -1 ELSE 12 % {=x} END
        CAST(list_position({li}, {i}) AS BIGINT); CASE {f} WHEN {f} THEN {i} WHEN {f} THEN {i} END; list_sum({li}); list_max({li})
        CASE WHEN {s:x} IN ('1', '12') THEN CAST({=x} AS BIGINT) END; {d} - {d}; gcd({i}, 6)
        len(list_filter({li}, lambda q: q > {i})); {r}['a']; extract(isodow FROM {d}); extract(quarter FROM {t}); extract(minute FROM {t})
        instr({s}, 'b'); position('a' IN {s})
        CASE WHEN {li:x} IS NOT NULL AND len({=x}) > 0 THEN 12 // len({=x}) END; CAST({i} AS INTEGER) + 1; {i} >> 1
        coalesce(CASE WHEN {i:x} <> 0 THEN 10 // {=x} END, {i}); lcm({i}, 4); levenshtein({s}, {s})""",
    "f": """{f} + {f}; {f} - {f}; {f} * {f}; -{f}; abs({f}); CAST({i} AS DOUBLE); {i} / 2e0; {i} + {f}; floor({f}); ceil({f})
        round({f}); trunc({f}); sqrt(abs({f})); power({f}, 2); {lf}[1]; {lf}[-1]; TRY_CAST({s} AS DOUBLE)
        CAST({n} AS DOUBLE); list_max({lf}); {f} % 2e0; extract(epoch FROM {t}); {i} / 4e0; exp(least({f}, 2e0)); ln(abs({f}) + 1e0); {n} * {f}
        round({f}, 1); CASE WHEN {i:x} <> 0 THEN 1e0 / {=x} END; nullif({f}, 'NaN'::DOUBLE); atan2({f}, {f}); cbrt({f})""",
    "s": """{s} || {s}; concat({s}, {s}); upper({s}); lower({s}); trim({s}); ltrim({s}, 'a'); substr({s}, 2); left({s}, 1)
        substring({s}, 1, 2); right({s}, 1); left({s}, -1); reverse({s}); replace({s}, 'a', {s}); repeat({s}, 2)
        lpad({s}, 3, 'x'); rpad({s}, 2, 'yz'); CAST({i} AS VARCHAR); CAST({b} AS VARCHAR); CAST({d} AS VARCHAR)
        CAST({n} AS VARCHAR); {ls}[1]; {ls}[{i}]; split_part({s}, 'b', 1); concat_ws('-', {s}, {s})
        translate({s}, 'ab', 'xy'); regexp_replace({s}, 'a+', 'z'); {r}['b']; {s} || {i}; {s} || NULL; substr({s}, 2, 1)
        substring({s} FROM 2 FOR 1); trim(BOTH 'a' FROM {s}); rtrim({s}, 'ab'); concat({s}, {i}, {b}); chr(97)
        left({s}, {i}); right({s}, {i}); lpad({s}, 2, 'ab'); split_part({s}, ' ', -1); CASE {s} WHEN 'a' THEN 'x' WHEN NULL THEN 'y' ELSE {s} END
        «to_char¦strftime»({t}, '%Y-%m-%d %H'); array_to_string({ls}, ','); concat_ws({s}, {s}, NULL, {s})""",
    "b": """{b} AND {b}; {b} OR {b}; NOT {b}; {b} IS TRUE; {b} IS NOT TRUE; {b} IS FALSE; {b} IS NOT FALSE; {s} LIKE 'a%'
        {s} NOT LIKE '%a%'; {s} LIKE '_b%'; {s} ILIKE 'A%'; {s} LIKE {s}; starts_with({s}, {s}); contains({s}, {s})
        {i} = {f}; {i} < {f}; {i} >= {n}; {f} > {n}; {d} < {t}; {t} >= {d}; isnan({f}); list_contains({li}, {i})
        list_contains({ls}, {s}); {i} = ANY({li}); {s} = ANY({ls}); {li} < {li}; {ls} < {ls}
        {i:x} <> 0 AND 12 // {=x} > 1; {i:x} = 0 OR 12 // {=x} < 3; {s:x} = '12' AND CAST({=x} AS BIGINT) > 5
        {d} + INTERVAL 1 DAY > {t}; {t} - {t} > INTERVAL '1 day'; {s} LIKE '%\\%' ESCAPE '\\'
        {s} NOT ILIKE '%B'; {s} BETWEEN 'a' AND 'b'; ends_with({s}, 'b'); {li} IS NULL OR len({li}) = 0; {r} = {r}; {r} <> {r}; {r} IS NULL; {r} IS NOT DISTINCT FROM {r}
        ({i}, {s}) = ({i}, {s}); ({i}, {s}) IN ((1, 'a'), (2, 'b')); CAST({i} AS BOOLEAN); {b} = {b}; {b} < {b}; {b} IN (true, NULL)
        CASE WHEN {b} THEN 12 // nullif({i}, 0) > 2 ELSE {b} END; {d} BETWEEN {d} AND {d}; {t} = {d}; {n} = {f}; {s} > {s}; {ll} = {ll}; {li} = {li}
        {li} <> {li}; list_has_any({li}, [1, 2]); list_has_all({li}, [1]); list_has_any([1, 2], CASE WHEN {b} THEN [1] END); {f} IN ('NaN'::DOUBLE, 0e0); {f} NOT IN ('NaN'::DOUBLE, NULL)""",
    "d": """CAST({t} AS DATE); {d} + 1; {d} - 31; CAST({d} + INTERVAL '1 month' AS DATE)
        CAST({d} - INTERVAL '1 year' AS DATE); CAST(date_trunc('month', {d}) AS DATE); TRY_CAST({s} AS DATE); CAST(date_trunc('week', {d}) AS DATE)
        CAST(date_trunc('year', {d}) AS DATE); make_date(2020, 2, 29); {d} + CAST({i} AS INTEGER); CAST({d} - INTERVAL '1 day' AS DATE)""",
    "t": """CAST({d} AS TIMESTAMP); {t} + INTERVAL '1 month'; {t} - INTERVAL '36 hours'; {t} + INTERVAL '1 day 2 hours'
        date_trunc('hour', {t}); date_trunc('month', {t}); date_trunc('quarter', {t}); {d} + INTERVAL '5 hours'
        {t} + ({t} - {t}); date_trunc('week', {t}); date_trunc('year', {t}); date_trunc('minute', {t}); date_trunc('day', {t})
        {t} - INTERVAL '1 year 2 months 3 days'; CAST({d} AS TIMESTAMP) + INTERVAL '30 minutes'; TRY_CAST({s} AS TIMESTAMP)""",
    "n": "{n} + {n}; {n} - {n}; -{n}; abs({n}); CAST({i} AS DECIMAL(12,2)); CAST({n} * {n} AS DECIMAL(12,2)); round({n}, 1); {n} + {i}; {i} * {n}; {n} % 2.00; CASE WHEN {b} THEN {n} ELSE 1 END",
    "li": """[{i}, {i}]; {li}[2:]; {li}[:1]; {li}[-2:]; {li}[1:2]; list_append({li}, {i}); list_prepend({i}, {li})
        list_reverse({li}); list_transform({li}, lambda q: q + 1); list_transform({li}, lambda q: q * {i})
        list_filter({li}, lambda q: q > 1); list_filter({li}, lambda q: q IS NULL); flatten({ll}); {ll}[1]; list_concat({li}, {li}); list_slice({li}, {i}, 2); CASE WHEN len({li:x}) > 1 THEN {=x}[2:] ELSE [{i}] END
        range(least({i}, 4)); list_transform({li}, lambda q: CASE WHEN q <> 0 THEN 12 // q END); list_transform({ll}, lambda q: len(q))
        list_filter({li}, lambda q: q <> 0 AND 12 // q > 1)""",
    "lf": "[{f}, {f}]; {lf}[2:]; list_transform({lf}, lambda q: q * 2); CAST({li} AS DOUBLE[]); list_reverse({lf})",
    "ls": "[{s}, {s}]; {ls}[2:]; list_reverse({ls}); list_transform({ls}, lambda q: upper(q)); CAST({li} AS VARCHAR[])",
    "ll": "[{li}, {li}]; {ll}[1:1]; list_append({ll}, {li})",
    "r": f"{STRUCT}; {STRUCT}; {STRUCT}",
}


# Ragged functions and equivalent expressions of DuckDB, in which p.a, p.b, .. are the arguments.
RAGGED = {
    "i": [
        ("ragged_sum({li})", "CASE WHEN p.a IS NOT NULL THEN coalesce(list_sum(p.a), 0) END"),
        ("ragged_sum({ll})", "CASE WHEN p.a IS NOT NULL THEN coalesce(list_sum(flatten(p.a)), 0) END"),
        ("ragged_lengths({li})", "len(p.a)"),
        ("ragged_max({li})", "list_max(p.a)"),
        ("ragged_min({ll})", "list_min(flatten(p.a))"),
        ("ragged_first({li})", "list_filter(p.a, lambda q: q IS NOT NULL)[1]"),
        ("ragged_last({li})", "list_filter(p.a, lambda q: q IS NOT NULL)[-1]"),
        ("ragged_at({li}, {i})", "CASE WHEN p.b >= 0 THEN p.a[p.b + 1] ELSE p.a[p.b] END"),
        ("ragged_nunique({li})", "list_unique(p.a)"),
        ("ragged_argmax({li})", "CASE WHEN list_max(p.a) IS NOT NULL THEN list_position(p.a, list_max(p.a)) - 1 END"),
        ("ragged_prod(ragged_head({li}, 3))", "CASE WHEN p.a IS NOT NULL THEN CAST(coalesce(list_product(p.a[:3]), 1) AS BIGINT) END"),
    ],
    "f": [
        ("ragged_mean({li})", "list_avg(p.a)"),
        ("ragged_median({li})", "list_median(p.a)"),
        ("ragged_quantile({li}, 0.25)", "list_aggregate(p.a, 'quantile_cont', 0.25)"),
        ("ragged_max({lf})", "list_max(p.a)"),
        ("ragged_at({lf}, -1)", "p.a[-1]"),
        ("ragged_std({li})", "list_stddev_samp(p.a)"),
    ],
    "s": [
        ("ragged_max({ls})", "list_max(p.a)"),
        ("ragged_last({ls})", "list_filter(p.a, lambda q: q IS NOT NULL)[-1]"),
        ("ragged_at({ls}, 0)", "p.a[1]"),
    ],
    "b": [
        ("ragged_any({li} > {i})", "CASE WHEN p.a IS NOT NULL THEN coalesce(list_bool_or(list_transform(p.a, lambda q: q > p.b)), false) END"),
        ("ragged_all({li} > {i})", "CASE WHEN p.a IS NOT NULL THEN coalesce(list_bool_and(list_transform(p.a, lambda q: q > p.b)), true) END"),
        ("ragged_any({ls} LIKE 'a%')", "CASE WHEN p.a IS NOT NULL THEN coalesce(list_bool_or(list_transform(p.a, lambda q: q LIKE 'a%')), false) END"),
        ("ragged_any({li} IN (1, 2))", "CASE WHEN p.a IS NOT NULL THEN coalesce(list_bool_or(list_transform(p.a, lambda q: q IN (1, 2))), false) END"),
    ],
    "li": [
        ("ragged_sort({li})", "list_sort(p.a, 'ASC', 'NULLS LAST')"),
        ("ragged_sort({li}, 'desc')", "list_sort(p.a, 'DESC', 'NULLS LAST')"),
        ("ragged_reverse({li})", "list_reverse(p.a)"),
        ("ragged_unique({li})", "list_sort(list_distinct(p.a))"),
        ("ragged_head({li}, 2)", "p.a[:2]"),
        ("ragged_tail({li}, 2)", "p.a[-2:]"),
        ("ragged_slice({li}, 1, 3)", "p.a[2:3]"),
        ("ragged_cumsum({li})", "list_transform(p.a, lambda q, i: CASE WHEN q IS NOT NULL THEN list_sum(p.a[:i]) END)"),
        ("ragged_cummax({li})", "list_transform(p.a, lambda q, i: CASE WHEN q IS NOT NULL THEN list_max(p.a[:i]) END)"),
        ("ragged_shift({li}, 1)", "list_transform(p.a, lambda q, i: CASE WHEN i > 1 THEN p.a[i - 1] END)"),
        ("ragged_ffill({li})", "list_transform(p.a, lambda q, i: list_filter(p.a[:i], lambda r: r IS NOT NULL)[-1])"),
        ("ragged_bfill({li})", "list_transform(p.a, lambda q, i: list_filter(p.a[i:], lambda r: r IS NOT NULL)[1])"),
        ("{li} + {i}", "list_transform(p.a, lambda q: q + p.b)"),
        ("{i} - {li}", "list_transform(p.b, lambda q: p.a - q)"),
        ("ragged_flatten({ll})", "flatten(p.a)"),
        ("ragged_max({ll}, -1)", "list_transform(p.a, lambda q: list_max(q))"),
        ("ragged_sum({ll}, -1)", "list_transform(p.a, lambda q: CASE WHEN q IS NOT NULL THEN coalesce(list_sum(q), 0) END)"),
        ("ragged_fill_null({li}, 5)", "list_transform(p.a, lambda q: coalesce(q, 5))"),
        ("ragged_indices_from_mask({li} > {i})", "list_filter(list_transform(p.a, lambda q, i: CASE WHEN q > p.b THEN i - 1 END), lambda q: q IS NOT NULL)"),
        ("ragged_map({li}, lambda v: v * 2 - 1)", "list_transform(p.a, lambda q: q * 2 - 1)"),
        ("ragged_filter({li~x}, {lf~x} > 0.5)", "CASE WHEN p.a IS NOT NULL THEN list_transform(list_filter(list_zip(p.a, p.b), lambda q: q[2] > 0.5e0), lambda q: q[1]) END"),
        ("ragged_filter({li~x}, {ls~x} = {s})", "CASE WHEN p.a IS NOT NULL THEN list_transform(list_filter(list_zip(p.a, p.b), lambda q: q[2] = p.c), lambda q: q[1]) END"),
        ("ragged_where({lf~x} > 0.5, {li~x}, {i})", "CASE WHEN p.a IS NOT NULL THEN list_transform(list_zip(p.a, p.b), lambda q: CASE WHEN q[1] > 0.5e0 THEN q[2] ELSE p.c END) END"),
        ("ragged_repeat({li}, 2)", "flatten(list_transform(p.a, lambda q: [q, q]))"),
    ],
    "lf": [
        ("ragged_sort({lf})", "list_sort(p.a, 'ASC', 'NULLS LAST')"),
        ("{lf} * 2.0", "list_transform(p.a, lambda q: q * 2)"),
        ("ragged_cast({li}, 'DOUBLE')", "CAST(p.a AS DOUBLE[])"),
        ("{lf~x} + {li~x}", "CASE WHEN p.a IS NOT NULL THEN list_transform(list_zip(p.a, p.b), lambda q: q[1] + q[2]) END"),
    ],
    "ls": [
        ("ragged_sort({ls})", "list_sort(p.a, 'ASC', 'NULLS LAST')"),
        ("ragged_unique({ls})", "list_sort(list_distinct(p.a))"),
        ("ragged_filter({ls~x}, {li~x} < {i})", "CASE WHEN p.a IS NOT NULL THEN list_transform(list_filter(list_zip(p.a, p.b), lambda q: q[2] < p.c), lambda q: q[1]) END"),
        ("ragged_filter({ls~x}, {lf~x} <> 0.5)", "CASE WHEN p.a IS NOT NULL THEN list_transform(list_filter(list_zip(p.a, p.b), lambda q: q[2] <> 0.5e0), lambda q: q[1]) END"),
        ("ragged_cast({li}, 'VARCHAR')", "CAST(p.a AS VARCHAR[])"),
    ],
    "ll": [
        ("ragged_sort({ll})", "list_transform(p.a, lambda q: list_sort(q, 'ASC', 'NULLS LAST'))"),
        ("{ll} + {i}", "list_transform(p.a, lambda q: list_transform(q, lambda r: r + p.b))"),
        ("ragged_reverse({ll})", "list_reverse(p.a)"),
        ("ragged_head({ll}, 1)", "p.a[:1]"),
        ("ragged_unsqueeze({li}, -1)", "list_transform(p.a, lambda q: [q])"),
    ],
}


def dual(ours, theirs):
    """Returns a template in both forms. In DuckDB, a struct holds the arguments, so that each is written once."""
    texts = re.split(r"\{[^}]*\}", ours)
    names = re.findall(r"\{([^}]*)\}", ours)
    out = f"«{texts[0]}¦list_transform([struct_pack("
    for i, name in enumerate(names):
        sign = ", " if i else ""
        out += ("«" + texts[i] + "¦" if i else "") + f"{sign}{'abc'[i]} := »{{{name}}}"
    return out + f"«{texts[-1]}¦)], lambda p: {theirs})[1]»"


def spelling(text, theirs):
    """Returns a statement in the syntax of DuckDB if `theirs`, and otherwise in that of Serrate."""
    while "«" in text:
        text = re.sub(r"«([^«»¦]*)¦([^«»¦]*)»", r"\2" if theirs else r"\1", text)
    return text


def _all_templates():
    out = {ty: [t.strip() for t in re.split(r";|\n", text)] for ty, text in TEMPLATES.items()}
    for ty, calls in RAGGED.items():
        out[ty].extend(dual(*call) for call in calls)
    for ty in out:
        add = lambda result, of: out[result].extend(t.replace("Z", ty) for t in of)
        add(ty, OF_ANY)
        add("b", TESTS)
        if ty in SINGLE:
            add(ty, OF_SINGLE)
        if ty in SINGLE and ty != "b":
            add(ty, OF_ORDERED)
            add("b", COMPARISONS)
    return out


ALL = _all_templates()


class Node:
    """A sequence of strings and nodes. `role` is a type, a tuple of columns, "optional", or None."""

    def __init__(self, role, *parts):
        self.role, self.parts = role, list(parts)

    def __str__(self):
        return "".join(map(str, self.parts))

    def below(self):
        for part in self.parts:
            if isinstance(part, Node):
                yield part
                yield from part.below()

    def instead(self):
        """Yields smaller nodes that can replace this node."""
        if self.role == "optional":
            yield Node("optional")
        elif self.role is not None and any(isinstance(p, Node) for p in self.parts):
            if isinstance(self.role, str):
                yield Node(self.role, LITERALS[self.role][0])
                yield Node(self.role, f"({NULLS[self.role]})")
            yield from [n for n in self.below() if n.role == self.role][:4]

    def smaller(self):
        for other in self.instead():
            if str(other) != str(self):
                yield other
        for i, part in enumerate(self.parts):
            if isinstance(part, Node):
                for other in part.smaller():
                    yield Node(self.role, *self.parts[:i], other, *self.parts[i + 1 :])


def is_joined(text):
    """Returns whether a string has a join outside parentheses."""
    inner = True
    while inner:
        text, inner = re.subn(r"\([^()]*\)", "", text)
    return " JOIN " in text


def optional(*parts):
    return Node("optional", *parts)


class Grammar:
    def __init__(self, seed, tables):
        self.random, self.tables, self.names = random.Random(seed), tables, 0

    def chance(self, p):
        return self.random.random() < p

    def pick(self, of):
        return self.random.choice(of)

    def name(self, start):
        self.names += 1
        # Some tables in subqueries have the name of an outer table, which they hide.
        if start == "r" and self.chance(0.06):
            return "r1"
        return f"{start}{self.names}"

    # Values. A scope lists the visible columns as (expression, type).

    def atom(self, ty, scope):
        fitting = [text for text, t in scope if t == ty]
        if fitting and self.chance(0.85):
            return Node(ty, self.pick(fitting))
        literal = NULLS[ty] if self.chance(0.15) else self.pick(LITERALS[ty])
        return Node(ty, f"({literal})" if literal[0] in "-N" else literal)

    def value(self, ty, scope, levels=2):
        if levels == 0 or self.chance(0.25):
            return self.atom(ty, scope)
        parts, saved = ["("], {}
        for at, text in enumerate(re.split(r"\{([^}]*)\}", self.pick(ALL[ty]))):
            if at % 2 == 0:
                parts.append(text)
            elif text[0] == "=":
                parts.append(saved[text[1:]])
            elif "~" in text:
                # Choose columns of one relation, because the lists of a table row have the same lengths.
                kind, key = text.split("~")
                bases = sorted({c.split(".")[0] for c, t in scope if re.fullmatch(r"r\d+\.l[ifs]", c)})
                alias = saved.setdefault(key, self.pick(bases) if bases else None)
                if alias is None:
                    return self.atom(ty, scope)
                parts.append(f"{alias}.{kind}")
            elif ":" in text:
                # Choose a column or a constant, because the template repeats it and both must be equal.
                kind, key = text.split(":")
                fitting = [c for c, t in scope if t == kind] or LITERALS[kind][:1]
                saved[key] = self.pick(fitting)
                parts.append(saved[key])
            else:
                parts.append(self.value(text, scope, levels - 1))
        return Node(ty, *parts, ")")

    def condition(self, scope, levels=3):
        if not self.chance(0.3):
            return self.value("b", scope, levels)
        sub = self.subquery(scope)
        return Node("b", sub, optional(" AND ", self.value("b", scope)))

    def correlated(self, scope):
        """Returns FROM and WHERE of a query over another table, which may refer to the outer query."""
        source, inside = self.relation(1) if self.chance(0.15) else self.base()
        ty = self.pick("iiisdf")
        outer, inner = ([c for c, t in of if t == ty] for of in (scope, inside))
        where = self.subquery(inside + scope[:3]) if self.chance(0.07) else self.value("b", inside)
        if outer and inner and self.chance(0.7):
            where = Node("b", f"{self.pick(inner)} = {self.pick(outer)}", optional(" AND ", where))
        return Node(None, " FROM ", source, optional(" WHERE ", where)), inside

    def subquery(self, scope):
        rest, inside = self.correlated(scope)
        negated = self.pick(["", "NOT "])
        if self.chance(0.15):
            # Search the first column of any query.
            query, columns = self.query(1)
            (name, ty), alias = columns[0], self.name("q")
            if ty in SINGLE or ty == "li":
                return Node("b", self.atom(ty, scope), f" {negated}IN (SELECT {alias}.{name} FROM (", query, f") AS {alias})")
            return Node("b", f"{negated}EXISTS (", query, ")")
        if self.chance(0.4):
            return Node("b", f"{negated}EXISTS (SELECT 1", rest, ")")
        if self.chance(0.1):
            a, b, c, d = self.atom("i", scope), self.atom("i", inside), self.atom("s", scope), self.atom("s", inside)
            return Node("b", "(", a, ", ", c, f") {negated}IN (SELECT ", b, ", ", d, rest, ")")
        if self.chance(0.25):
            ty, sign = self.pick("iisfdn"), self.pick(["=", "<>", "<", ">=", ">"])
            left, right = self.atom(ty, scope), self.atom(ty, inside)
            return Node("b", left, f" {sign} {self.pick(['ANY', 'ALL'])} (SELECT ", right, rest, ")")
        ty = self.pick("iisfdn")
        left, right = self.atom(ty, scope), self.atom(ty, inside)
        return Node("b", left, f" {negated}IN (SELECT ", right, rest, ")")

    def scalar(self, ty, scope):
        rest, inside = self.correlated(scope)
        if self.chance(0.2):
            order = self.pick([c for c, t in inside if t in "ifsdt"] or [inside[0][0]])
            order = f" ORDER BY {order}{self.pick(['', ' DESC', ' NULLS FIRST'])}, {inside[0][0]} LIMIT 1{self.pick(['', ' OFFSET 1'])}"
            return Node(ty, "(SELECT ", self.atom(ty, inside), rest, order, ")")
        call = "count(*)" if ty == "i" and self.chance(0.5) else None
        call = [call] if call else [self.pick(["max", "min"]), "(", self.atom(ty, inside), ")"]
        having = optional(" HAVING ", self.pick(["count(*) > 1", "count(*) = 0"])) if self.chance(0.1) else ""
        return Node(ty, "(SELECT ", *call, rest, having, ")")

    # Relations.

    def base(self):
        alias = self.name("r")
        table = self.pick(self.tables)
        return Node(None, f"{table} AS {alias}"), [(f"{alias}.{c}", ty) for c, ty in COLUMNS.items()]

    def relation(self, levels):
        draw = self.random.random()
        if draw < 0.12:
            return getattr(self, self.pick(["using", "using", "lateral", "lateral", "values", "exploded", "semi", "series"]))()
        if levels == 0 or draw < 0.5:
            return self.base()
        if draw < 0.7:
            query, columns = self.query(levels - 1)
            alias = self.name("q")
            return Node(None, "(", query, f") AS {alias}"), [(f"{alias}.{c}", ty) for c, ty in columns]
        return self.join(levels)

    def using(self):
        """Joins two tables by columns of the same name."""
        keys = self.random.sample(["k", "k", "v", "s", "f", "d", "n", "b", "t"], self.pick([1, 1, 2]))
        keys = {key: self.name("u") for key in keys}
        sides, scope = [], [(name, COLUMNS[key]) for key, name in keys.items()]
        for _ in range(2):
            alias, others = self.name("r"), {c: self.name("x") for c in ["id", *self.random.sample(list(COLUMNS), 3)]}
            items = ", ".join(f"{c} AS {name}" for c, name in [*keys.items(), *others.items()])
            sides.append(f"(SELECT {items} FROM {self.pick(self.tables)}) AS {alias}")
            scope += [(f"{alias}.{name}", COLUMNS[c]) for c, name in others.items()]
            scope += [(f"{alias}.{name}", COLUMNS[key]) for key, name in keys.items()]
        kind = self.pick(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
        if self.chance(0.4):
            return Node(None, f"{sides[0]} NATURAL {kind} {sides[1]}"), scope
        return Node(None, f"{sides[0]} {kind} {sides[1]} USING ({', '.join(keys.values())})"), scope

    def lateral(self):
        """Joins a table with a query that is evaluated for each of its rows."""
        left, scope = self.base()
        alias, x, y = self.name("l"), self.name("x"), self.name("x")
        draw = self.random.randrange(5)
        if draw == 0:
            ty = self.pick(["li", "ls", "lf", "ll"])
            text = f" AS {alias}({x})"
            element = ty[1:] if ty != "ll" else "li"
            kind = self.pick([" CROSS JOIN ", " CROSS JOIN LATERAL "])
            return Node(None, left, kind, "unnest(", self.value(ty, scope, 1), ")", text), scope + [(f"{alias}.{x}", element)]
        rest, inside = self.correlated(scope)
        a, b = self.pick("iisfd"), self.pick("isdn")
        if draw == 1:
            items = ["count(*) AS ", x, f", {self.pick(['max', 'min'])}(", self.value(b, inside, 1), ") AS ", y]
            a, tail = "i", ""
        elif draw == 2:
            items = [self.value(a, inside, 1), f" AS {x}, ", self.value(b, inside, 1), f" AS {y}"]
            tail = f" ORDER BY {inside[0][0]} LIMIT {self.random.randrange(3)}"
        else:
            items = [self.value(a, inside, 1), f" AS {x}, ", self.value(b, inside + scope, 1), f" AS {y}"]
            tail = ""
        query = Node(None, "(SELECT ", *items, rest, tail, f") AS {alias}")
        scope = scope + [(f"{alias}.{x}", a), (f"{alias}.{y}", b)]
        if self.chance(0.4):
            return Node(None, left, " LEFT JOIN LATERAL ", query, " ON true"), scope
        return Node(None, left, " CROSS JOIN LATERAL ", query), scope

    def values(self):
        types = [self.pick([*SINGLE, "li"]) for _ in range(self.random.randrange(1, 4))]
        alias, names = self.name("v"), [self.name("x") for _ in types]
        cell = lambda ty: f"({NULLS[ty] if self.chance(0.25) else self.pick(LITERALS[ty])})"
        if not all(types):
            types = ["i"]
        rows = ", ".join("(" + ", ".join(map(cell, types)) + ")" for _ in range(self.random.randrange(1, 5)))
        casts = {"i": "BIGINT", "f": "DOUBLE", "li": "BIGINT[]", "n": "DECIMAL(12,2)"}
        items = ", ".join(f"CAST({n} AS {casts[ty]}) AS {n}" if ty in casts else n for n, ty in zip(names, types))
        text = f"(SELECT {items} FROM (VALUES {rows}) AS {alias}({', '.join(names)})) AS {alias}"
        return Node(None, text), [(f"{alias}.{n}", ty) for n, ty in zip(names, types)]

    def exploded(self):
        """Turns the elements of lists into rows."""
        alias, table = self.name("e"), self.pick(self.tables)
        singles, lists = self.random.sample(["k", "s", "f", "d", "n"], 2), self.pick([["li"], ["ls"], ["li", "ls"], ["li", "lf", "ls"], ["ll"]])
        ours = f"ragged_explode((SELECT id, {', '.join(singles + lists)} FROM {table}))"
        theirs = ", ".join(f"unnest({c}) AS {c}" if c != "ll" else "unnest(flatten(ll)) AS ll" for c in lists)
        theirs = f"(SELECT id, {', '.join(singles)}, {theirs} FROM {table})"
        scope = [(f"{alias}.{c}", COLUMNS[c]) for c in ["id", *singles]]
        scope += [(f"{alias}.{c}", c[1:] if c != "ll" else "i") for c in lists]
        return Node(None, f"«{ours}¦{theirs}» AS {alias}"), scope

    def semi(self):
        (left, a), (right, b) = self.base(), self.base()
        ty = self.pick("iiisfdn")
        l, r = (self.pick([c for c, t in of if t == ty]) for of in (a, b))
        on = Node("b", f"{l} = {r}", optional(" AND ", self.value("b", a + b)))
        return Node(None, left, f" «LEFT ¦»{self.pick(['SEMI', 'ANTI'])} JOIN ", right, " ON ", on), a

    def series(self):
        alias, x = self.name("g"), self.name("x")
        return Node(None, f"generate_series({self.random.randrange(-2, 2)}, {self.random.randrange(1, 5)}) AS {alias}({x})"), [(f"{alias}.{x}", "i")]

    def join(self, levels):
        (left, a), (right, b) = self.relation(levels - 1), self.relation(0)
        if is_joined(str(right)):
            right = Node(None, "(", right, ")")
        kind = self.pick(["JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN"])
        if kind == "CROSS JOIN":
            return Node(None, left, " CROSS JOIN ", right), a + b
        ty = self.pick(["i", "i", "i", "s", "f", "d", "n", "b", "t", "li", "li", "ls", "lf", "ll", "r"])
        l, r = ([c for c, t in of if t == ty] for of in (a, b))
        on = self.value("b", a + b) if self.chance(0.85) else self.subquery(a + b)
        if self.chance(0.25):
            ty = self.pick("iiisfdnr")
            on = Node("b", self.value(ty, a, 1), " = ", self.value(ty, b, 1), optional(" AND ", on))
        elif l and r:
            sign = self.pick(["=", "=", "=", "=", "IS NOT DISTINCT FROM", "<"])
            on = Node("b", f"{self.pick(l)} {sign} {self.pick(r)}", optional(" AND ", on))
        return Node(None, left, f" {kind} ", right, " ON ", on), a + b

    # Queries.

    def items(self, scope, n=None, types=None, scalars=True):
        items, columns = [], []
        for i in range(n or self.random.randrange(1, 4)):
            ty = self.pick(types or [*SINGLE, *SINGLE, *SINGLE, "li", "lf", "ls", "ll", "li", "lf", "ls", "ll", "r"])
            made = self.scalar(ty, scope) if scalars and ty in "ifsdtn" and self.chance(0.08) else self.value(ty, scope)
            items.append(Node(None, ", " if i else "", made, f" AS c{i}"))
            columns.append((f"c{i}", ty))
        return items, columns

    def where(self, scope):
        return optional(" WHERE ", self.condition(scope)) if self.chance(0.6) else ""

    def query(self, levels):
        kinds = ["plain"] * 3 + ["grouped"] * 2
        if levels:
            kinds += ["distinct", "distinct_on", "windowed", "windowed", "qualified", "set", "set", "sets"]
            kinds += ["sets", "with_", "unnested", "limited", "limited", "constant"]
            kinds += ["recursive", "ranked", "by_name", "nested", "starred", "structs", "shadowed", "totals"]
        parts, columns = getattr(self, self.pick(kinds))(levels)
        return Node(tuple(columns), *parts), columns

    def plain(self, levels):
        source, scope = self.relation(levels)
        items, columns = self.items(scope)
        return ["SELECT ", *items, " FROM ", source, self.where(scope)], columns

    def aggregate(self, scope):
        ty = self.pick(["i", "i", "f", "s", "d", "t", "n"])
        rows = optional(" FILTER (WHERE ", self.value("b", scope, 1), ")") if self.chance(0.3) else ""
        draw, x = self.random.randrange(8), self.value(ty, scope, 1)
        if self.chance(0.35):
            return self.rarer(scope, rows)
        distinct = self.pick(["", "", "DISTINCT "])
        if draw == 0:
            return "i", ["count(*)", rows]
        if draw <= 2:
            return "i", [f"count({distinct}", x, ")", rows]
        if draw <= 4:
            return ty, [self.pick(["min(", "max("]), x, ")", rows]
        if draw == 5:
            return "b", [self.pick(["bool_and(", "bool_or("]), self.value("b", scope, 1), ")", rows]
        if draw == 6 and ty == "i":
            return "f", ["avg(", x, ")", rows]
        return "i", [f"CAST(sum({distinct}", self.value("i", scope, 1), ")", rows, " AS BIGINT)"]

    def rarer(self, scope, rows):
        """Returns one of the aggregates that are generated less often."""
        integer = lambda: self.value("i", scope, 1)
        unique = [c for c, _ in scope if re.fullmatch(r"r\d+\.id", c)]
        draw = self.random.randrange(14)
        if draw <= 4 and unique and len({c.split(".")[0] for c, _ in scope}) == 1:
            # The aggregate needs a total order, which the unique key of the only table gives.
            key = self.pick([c for c, t in scope if t in SINGLE])
            order = f" ORDER BY {key}{self.pick(['', ' DESC', ' NULLS FIRST'])}, {unique[0]}{self.pick(['', ' DESC'])})"
            ty = self.pick("iisfbdn")
            if draw == 0:
                return "s", ["string_agg(", self.value("s", scope, 1), ", ','", order, rows]
            if draw == 1:
                return ty, [self.pick(["«first_value¦first»(", "«last_value¦last»("]), self.value(ty, scope, 1), order, rows]
            if ty not in "ifs" or draw == 2:
                lists = self.atom("li", scope)
                where = f"« FILTER (WHERE true)¦ FILTER (WHERE {lists} IS NOT NULL)»"
                return "li", ["«ragged_concat_agg(¦flatten(list(»", str(lists), order, where, "«¦)»"]
            return "l" + ty, [self.pick(["array_agg(", "«ragged_nest_agg¦list»("]), self.value(ty, scope, 1), order, rows]
        if draw == 5:
            return "n", ["CAST(sum(", self.value("n", scope, 1), ")", rows, " AS DECIMAL(12,2))"]
        if draw == 6:
            return "i", [self.pick(["bit_and(", "bit_or(", "bit_xor("]), integer(), ")", rows]
        if draw == 7:
            return "f", [self.pick(["stddev(", "var_pop(", "stddev_pop(", "var_samp(", "median("]), "CAST(", integer(), " AS DOUBLE))", rows]
        if draw == 8:
            return "f", [self.pick(["covar_pop(", "regr_count(", "covar_samp("]), integer(), ", ", integer(), ")", rows]
        if draw == 9:
            return "i", ["count(DISTINCT ", self.value(self.pick(["f", "li", "s", "n", "r", "ls"]), scope, 1), ")", rows]
        if draw == 10:
            return "f", ["sum(", self.value("f", scope, 1), ")", rows]
        if draw == 11:
            return "i", ["CASE WHEN count(*) > 1 THEN 12 // count(*) ELSE ", "max(", integer(), ") END"]
        if draw == 12:
            return "i", ["CAST(sum(CASE WHEN ", self.value("b", scope, 1), " THEN ", integer(), " ELSE 0 END)", rows, " AS BIGINT)"]
        return "n", ["max(", self.value("n", scope, 1), ")", rows]

    def grouped(self, levels):
        source, scope = self.relation(levels)
        keys = self.random.sample(scope, min(len(scope), self.random.randrange(0, 3)))
        if keys and self.chance(0.25):
            # Group by an expression of a column.
            key, ty = keys[0]
            return self.grouped_by(source, scope, self.pick([ty, "i", "s", "b", "r"]), key)
        items, columns = [], []
        for i, (key, ty) in enumerate(keys):
            items.append(Node(None, f"{key} AS c{i}, "))
            columns.append((f"c{i}", ty))
        for i in range(len(keys), len(keys) + self.random.randrange(1, 3)):
            ty, call = self.aggregate(scope)
            items.append(Node(None, "" if i == len(keys) else ", ", *call, f" AS c{i}"))
            columns.append((f"c{i}", ty))
        by = [" GROUP BY ", ", ".join(key for key, _ in keys)] if keys else []
        having = self.having(scope, keys) if self.chance(0.3) else ""
        return ["SELECT ", *items, " FROM ", source, self.where(scope), *by, having], columns

    def grouped_by(self, source, scope, ty, key):
        """Groups by an expression, which GROUP BY repeats or names by its position."""
        written = Node(None, self.value(ty, [(key, dict(scope)[key])], 2))
        kind, call = self.aggregate(scope)
        by = self.pick([f" GROUP BY {written}", " GROUP BY 1"]) if key in str(written) else " GROUP BY 1"
        text = [f"SELECT {written} AS c0, ", *call, " AS c1 FROM ", source, self.where(scope), by]
        return text, [("c0", ty), ("c1", kind)]

    def having(self, scope, keys):
        draw = self.random.randrange(5)
        if draw == 0:
            return optional(self.pick([" HAVING count(*) > 1", " HAVING count(*) = 1"]))
        ty = self.pick("iisfdn")
        test = [self.pick(["max(", "min("]), self.value(ty, scope, 1), ")"]
        if draw == 1:
            return optional(" HAVING ", *test, self.pick([" > ", " <= ", " <> "]), self.atom(ty, []))
        if draw == 2:
            return optional(" HAVING ", *test, self.pick([" IS NULL", " IS NOT NULL"]))
        if draw == 3 and keys:
            return optional(" HAVING ", self.condition(keys, 2))
        source, inside = self.base()
        return optional(" HAVING count(*) ", self.pick(["> ", "<= "]), "(SELECT count(*) FROM ", source, optional(" WHERE ", self.value("b", inside)), ")")

    def sets(self, levels):
        query, inner = self.query(levels - 1)
        h = self.name("h")
        scope = [(f"{h}.{c}", ty) for c, ty in inner]
        keys = scope[:2]
        texts = [key for key, _ in keys]
        kind = self.pick(["ROLLUP", "CUBE", "SETS"])
        by = f"{kind} ({', '.join(texts)})"
        if kind == "SETS":
            some = [self.random.sample(texts, self.random.randrange(len(texts) + 1)) for _ in range(2)]
            by = "GROUPING SETS (" + ", ".join(f"({', '.join(s)})" for s in [texts, *some]) + ")"
        ty, call = self.aggregate(scope)
        items = "".join(f"{key} AS c{i}, " for i, key in enumerate(texts))
        last = f"c{len(keys)}"
        columns = [(f"c{i}", t) for i, (_, t) in enumerate(keys)] + [(last, ty)]
        where = optional(" WHERE ", self.value("b", scope)) if self.chance(0.4) else ""
        return [f"SELECT {items}", *call, f" AS {last} FROM (", query, f") AS {h}", where, f" GROUP BY {by}"], columns

    def distinct(self, levels):
        source, scope = self.relation(levels)
        items, columns = self.items(scope)
        return ["SELECT DISTINCT ", *items, " FROM ", source, self.where(scope)], columns

    def distinct_on(self, _):
        source, scope = self.base()
        items, columns = self.items(scope, scalars=False)
        key = self.pick([c for c, ty in scope if ty != "ll"])
        way = self.pick(["", " DESC", " NULLS FIRST"])
        order = f" ORDER BY {key}{way}, {scope[0][0]}"
        return [f"SELECT DISTINCT ON ({key}) ", *items, " FROM ", source, self.where(scope), order], columns

    def frames(self, scope):
        """Returns a window function over a random frame."""
        part = f"PARTITION BY {self.pick(scope)[0]} " if self.chance(0.6) else ""
        unit = self.pick(["ROWS", "ROWS", "GROUPS", "RANGE"])
        ends = ["UNBOUNDED PRECEDING", "2 PRECEDING", "1 PRECEDING", "CURRENT ROW", "1 FOLLOWING", "3 FOLLOWING", "UNBOUNDED FOLLOWING"]
        start = self.random.randrange(6)
        end = self.random.randrange(max(start, 1), 7)
        frame = f" {unit} BETWEEN {ends[start]} AND {ends[end]}"
        way = self.pick(["", " DESC", " NULLS FIRST", " DESC NULLS LAST"])
        if unit == "ROWS":
            key = self.pick([c for c, ty in scope if ty in SINGLE]) + way + ", " + scope[0][0]
        elif unit == "RANGE":
            key = self.pick([c for c, ty in scope if ty == "i"]) + way
        else:
            key = self.pick([c for c, ty in scope if ty in SINGLE]) + way
        over = f" OVER ({part}ORDER BY {key}{frame})"
        ty = self.pick("iisfdn")
        rows = optional(" FILTER (WHERE ", self.value("b", scope, 1), ")") if self.chance(0.25) else ""
        x, draw = self.value(ty, scope, 1), self.random.randrange(8)
        if draw == 0:
            return "i", ["count(*)", rows, over]
        if draw == 1:
            return "i", ["CAST(sum(", self.value("i", scope, 1), ")", rows, over, " AS BIGINT)"]
        if draw == 2:
            return "f", ["avg(", self.value("i", scope, 1), ")", rows, over]
        if draw == 3 and unit == "ROWS":
            return ty, [self.pick(["first_value(", "last_value("]), x, ")", over]
        if draw == 4 and unit == "ROWS":
            return ty, ["nth_value(", x, ", 2)", over]
        if draw == 5 and unit == "ROWS":
            call, nulls = self.pick(["first_value(", "last_value(", "lag(", "lead("]), " IGNORE NULLS"
            return ty, [call, x, f"«){nulls}¦{nulls})»", over if call[0] in "fl" and "_" in call else over.replace(frame, "")]
        if draw == 6:
            return "b", [self.pick(["bool_or(", "bool_and("]), self.value("b", scope, 1), ")", rows, over]
        return ty, [self.pick(["max(", "min("]), x, ")", rows, over]

    def window(self, scope):
        if self.chance(0.4):
            return self.frames(scope)
        part = f"PARTITION BY {self.pick(scope)[0]} " if self.chance(0.6) else ""
        key = self.pick([c for c, ty in scope if ty in SINGLE])
        order = f"ORDER BY {key}{self.pick(['', ' DESC', ' NULLS FIRST', ' DESC NULLS LAST'])}, {scope[0][0]}"
        frame = self.pick(["", " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING", " ROWS BETWEEN 2 PRECEDING AND CURRENT ROW"])
        ty = self.pick("ifsdn")
        x = self.value(ty, scope, 1)
        draw = self.random.randrange(9)
        if draw == 6:
            return "i", [f"ntile({self.random.randrange(1, 4)}) OVER ({part}{order})"]
        if draw == 7:
            return "f", [f"{self.pick(['percent_rank', 'cume_dist'])}() OVER ({part}{order})"]
        if draw == 8:
            return ty, [self.pick(["lag(", "lead("]), x, f", {self.random.randrange(3)}, ", self.pick(LITERALS[ty]), f") OVER ({part}{order})"]
        if draw == 0:
            return "i", [f"row_number() OVER ({part}{order})"]
        if draw == 1:
            return "i", [f"{self.pick(['rank', 'dense_rank'])}() OVER ({part}{order})"]
        if draw == 2:
            return ty, [self.pick(["lag(", "lead("]), x, f") OVER ({part}{order})"]
        if draw == 3:
            return "i", ["count(", x, f") OVER ({part}{order}{frame})"]
        return ty, [self.pick(["max(", "min(", "first_value("]), x, f") OVER ({part}{order}{frame})"]

    def windowed(self, _):
        source, scope = self.base()
        items, columns = self.items(scope, self.random.randrange(1, 3))
        ty, call = self.window(scope)
        last = f"c{len(columns)}"
        return ["SELECT ", *items, ", ", *call, f" AS {last} FROM ", source, self.where(scope)], [*columns, (last, ty)]

    def qualified(self, _):
        source, scope = self.base()
        items, columns = self.items(scope, scalars=False)
        ty, call = self.window(scope)
        test = self.pick([" = 1", " > 1", " IS NULL"] if ty == "i" else [" IS NULL", " IS NOT NULL"])
        return ["SELECT ", *items, " FROM ", source, self.where(scope), " QUALIFY ", *call, test], columns

    def set(self, levels):
        left, columns = self.query(levels - 1)
        source, scope = self.relation(levels - 1)
        items = [Node(None, ", " if i else "", self.value(ty, scope, 1), f" AS {c}") for i, (c, ty) in enumerate(columns)]
        right = Node(tuple(columns), "SELECT ", *items, " FROM ", source, self.where(scope))
        kind = self.pick(["UNION", "UNION ALL", "EXCEPT", "INTERSECT", "EXCEPT ALL", "INTERSECT ALL"])
        return ["(", left, f") {kind} (", right, ")"], columns

    def with_(self, levels):
        query, inner = self.query(levels - 1)
        c, a, b = self.name("w"), self.name("r"), self.name("r")
        scope = [(f"{a}.{name}", ty) for name, ty in inner]
        source = [f"{c} AS {a}"]
        if self.chance(0.5):
            other = [(f"{b}.{name}", ty) for name, ty in inner]
            kind = self.pick(["JOIN", "LEFT JOIN", "FULL JOIN"])
            source = [f"{c} AS {a} {kind} {c} AS {b} ON {scope[0][0]} = {other[0][0]}"]
            scope = scope + other
        items, columns = self.items(scope)
        return [f"WITH {c} AS (", query, ") SELECT ", *items, " FROM ", *source, self.where(scope)], columns

    def unnested(self, levels):
        source, scope = self.relation(levels - 1)
        items, columns = self.items(scope, 1)
        lists = []
        for i in range(1, self.random.randrange(2, 4)):
            ty = self.pick(["li", "ls", "lf", "ll"])
            lists.append(Node(None, ", unnest(", self.value(ty, scope, 1), f") AS c{i}"))
            columns = [*columns, (f"c{i}", ty[1:] if ty != "ll" else "li")]
        return ["SELECT ", *items, *lists, " FROM ", source, self.where(scope)], columns

    def constant(self, levels):
        query, inner = self.query(levels - 1)
        ty = self.pick(SINGLE)
        names = ", ".join(c for c, _ in inner)
        constant, last = self.pick(LITERALS[ty]), self.name("x")
        where = optional(" WHERE ", self.value("b", [], 1))
        return [f"SELECT {names}, {constant} AS {last} FROM (", query, ") AS y", where], [*inner, (last, ty)]

    def recursive(self, _):
        """Counts up in a recursive query, or follows keys through the rows of a table."""
        c, x, y, a = (self.name(n) for n in "wxyr")
        source, scope = self.base()
        start = ["SELECT ", self.pick([t for t, ty in scope if ty == "i"]), f" AS {x}, 0 AS {y} FROM ", source, self.where(scope)]
        inner = [(f"{c}.{x}", "i"), (f"{c}.{y}", "i")]
        way = self.random.randrange(2)
        if way == 0:
            step = [f"SELECT {c}.{x} + 1, {c}.{y} + 1 FROM {c} WHERE {c}.{y} < 3", optional(" AND ", self.value("b", inner, 1))]
        else:
            other, inside = self.base()
            key = self.pick([t for t, ty in inside if ty == "i"])
            step = [f"SELECT {inside[1][0]}, {c}.{y} + 1 FROM {c} JOIN ", other, f" ON {key} = {c}.{x} WHERE {c}.{y} < 2"]
        union = self.pick(["UNION ALL", "UNION"])
        scope = [(f"{a}.{x}", "i"), (f"{a}.{y}", "i")]
        if self.chance(0.4):
            ty, call = self.aggregate(scope)
            return [f"WITH RECURSIVE {c} AS (", *start, f" {union} ", *step, f") SELECT {a}.{y} AS c0, ", *call, f" AS c1 FROM {c} AS {a} GROUP BY {a}.{y}"], [("c0", "i"), ("c1", ty)]
        items, columns = self.items(scope)
        return [f"WITH RECURSIVE {c} AS (", *start, f" {union} ", *step, ") SELECT ", *items, f" FROM {c} AS {a}", self.where(scope)], columns

    def ranked(self, _):
        """Evaluates window functions over groups."""
        source, scope = self.relation(1)
        key, ty = self.pick(scope)
        kind, call = self.aggregate(scope)
        window = self.pick(["sum(count(*)) OVER ()", f"rank() OVER (ORDER BY count(*) DESC)", f"sum(count(*)) OVER (ORDER BY {key})", f"max(max({key})) OVER ()", f"count(*) OVER (PARTITION BY count(*))"])
        last = ty if window.startswith("max") else "i"
        window = f"CAST({window} AS BIGINT)" if last == "i" else window
        return [f"SELECT {key} AS c0, ", *call, f" AS c1, {window} AS c2 FROM ", source, self.where(scope), f" GROUP BY {key}"], [("c0", ty), ("c1", kind), ("c2", last)]

    def by_name(self, levels):
        left, columns = self.query(levels - 1)
        source, scope = self.relation(levels - 1)
        turned = self.random.sample(columns, self.random.randrange(1, len(columns) + 1))
        items = [Node(None, ", " if i else "", self.value(ty, scope, 1), f" AS {c}") for i, (c, ty) in enumerate(turned)]
        kind = self.pick(["UNION BY NAME", "UNION ALL BY NAME"])
        return ["(", left, f") {kind} (SELECT ", *items, " FROM ", source, self.where(scope), ")"], columns

    def nested(self, _):
        """Nests the rows of a table as lists."""
        table, a, (key, value) = self.pick(self.tables), self.name("n"), self.random.sample(["k", "v", "s", "f", "n", "li", "d"], 2)
        if key == "li":
            key, value = value, key
        where = optional(f" WHERE {key} IS NOT NULL")
        ours = f"ragged_nest((SELECT {key}, id, {value} FROM {table}"
        theirs = f"(SELECT {key}, list(id ORDER BY id) AS id, list({value} ORDER BY id) AS {value} FROM {table}"
        scope = [(f"{a}.{key}", COLUMNS[key]), (f"{a}.id", "li")]
        if COLUMNS[value] in "ifs" or value == "li":
            scope.append((f"{a}.{value}", "l" + COLUMNS[value] if value != "li" else "ll"))
        items, columns = self.items(scope, scalars=False)
        return ["SELECT ", *items, f" FROM «{ours}¦{theirs}»", where, f"« ORDER BY {key}, id), '{key}')¦ GROUP BY {key})» AS {a}", self.where(scope)], columns

    def starred(self, levels):
        query, inner = self.query(levels - 1)
        a = self.name("q")
        if len(inner) > 1 and self.chance(0.5):
            out = self.pick(inner)
            return [f"SELECT * EXCLUDE ({out[0]}) FROM (", query, f") AS {a}"], [c for c in inner if c != out]
        scope = [(f"{a}.{c}", ty) for c, ty in inner]
        x, ty = self.name("x"), self.pick(SINGLE)
        return [f"SELECT {a}.*, ", self.value(ty, scope), f" AS {x} FROM (", query, f") AS {a}", self.where(scope)], [*inner, (x, ty)]

    def structs(self, levels):
        """Uses a struct as a key."""
        source, scope = self.relation(levels - 1)
        a, r = self.name("q"), self.value("r", scope, 2)
        inner = ["(SELECT ", r, " AS c0, ", self.value("i", scope, 1), " AS c1 FROM ", source, self.where(scope), f") AS {a}"]
        draw = self.random.randrange(4)
        if draw == 0:
            return [f"SELECT {a}.c0 AS c0, count(*) AS c1 FROM ", *inner, f" GROUP BY {a}.c0"], [("c0", "r"), ("c1", "i")]
        if draw == 1:
            return [f"SELECT DISTINCT {a}.c0 AS c0 FROM ", *inner], [("c0", "r")]
        if draw == 2:
            return [f"SELECT {a}.c0 AS c0, row_number() OVER (PARTITION BY {a}.c0 ORDER BY {a}.c1) AS c1 FROM ", *inner], [("c0", "r"), ("c1", "i")]
        items, columns = self.items([(f"{a}.c0", "r"), (f"{a}.c1", "i")], types=[*SINGLE, "r"])
        return ["SELECT ", *items, " FROM ", *inner, self.where([(f"{a}.c0", "r"), (f"{a}.c1", "i")])], columns

    def shadowed(self, levels):
        """Names a common table expression like a table or like an outer common table expression."""
        query, inner = self.query(0)
        name, a = self.pick([self.tables[0], "w0"]), self.name("r")
        scope = [(f"{a}.{c}", ty) for c, ty in inner]
        items, columns = self.items(scope, scalars=False)
        inner_query = Node(tuple(columns), f"WITH {name} AS (SELECT * FROM (", query, ") AS y) SELECT ", *items, f" FROM {name} AS {a}")
        b, x = self.name("r"), self.name("x")
        return [f"SELECT {b}.*, (SELECT count(*) FROM {self.tables[0]}) AS {x} FROM (", inner_query, f") AS {b}"], [*columns, (x, "i")]

    def totals(self, _):
        """Groups by several sets of keys, and shows which keys a row is grouped by."""
        source, scope = self.base()
        keys = [c for c, ty in self.random.sample([c for c in scope if c[1] in SINGLE], 2)]
        types = dict(scope)
        kind, call = self.aggregate(scope)
        by = self.pick([f"ROLLUP ({keys[0]}, {keys[1]})", f"CUBE ({keys[0]}, {keys[1]})", f"GROUPING SETS (({keys[0]}), ({keys[1]}), ())"])
        grouping = f"grouping({keys[0]})"
        if self.chance(0.4):
            grouping = f"CASE WHEN grouping({keys[0]}) = 1 THEN -1 ELSE count(*) END"
        columns = [("c0", types[keys[0]]), ("c1", types[keys[1]]), ("c2", "i"), ("c3", kind)]
        return [f"SELECT {keys[0]} AS c0, {keys[1]} AS c1, CAST({grouping} AS BIGINT) AS c2, ", *call, " AS c3 FROM ", source, self.where(scope), f" GROUP BY {by}"], columns

    def order(self, columns):
        ways = ["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]
        return ", ".join(f"{c}{self.pick(ways)}" for c, _ in self.random.sample(columns, len(columns)))

    def limited(self, levels):
        query, columns = self.query(levels - 1)
        offset = self.pick(["", "", " OFFSET 1", " OFFSET 4"])
        limit = f" LIMIT {self.random.randrange(8)}{offset}"
        return ["SELECT * FROM (", query, f") AS z ORDER BY {self.order(columns)}{limit}"], columns

    def statement(self):
        """Returns a statement, and whether its rows have a total order."""
        self.names = 0
        query, columns = self.query(2)
        if self.chance(0.6):
            return query, False
        if self.chance(0.2):
            # Sort by expressions, some of which use columns that the result does not have.
            z = self.name("z")
            scope = [(f"{z}.{c}", ty) for c, ty in columns]
            shown = self.random.sample(columns, self.random.randrange(1, len(columns) + 1))
            first = [self.value(self.pick([ty for _, ty in columns]), scope, 1), self.pick(["", " DESC", " NULLS FIRST"]), ", "]
            limit = optional(f" LIMIT {self.random.randrange(9)}") if len(shown) == len(columns) else ""
            items = ", ".join(f"{z}.{c} AS {c}" for c, _ in shown)
            order = Node(None, *first) if self.chance(0.6) else ""
            return Node(None, f"SELECT {items} FROM (", query, f") AS {z} ORDER BY ", order, self.order(columns), limit), len(shown) == len(columns)
        limit = optional(f" LIMIT {self.random.randrange(9)}", optional(f" OFFSET {self.random.randrange(5)}"))
        return Node(None, "SELECT * FROM (", query, f") AS z ORDER BY {self.order(columns)}", limit), True


def table(rnd, rows):
    """Returns a random table of all types, with nulls, empty lists, extreme times, NaN and infinity."""
    rate = lambda: rnd.choice([0, 0.15, 0.3, 0.3, 1])
    first = rnd.choice([0, 0.15, 0.3])
    # Each third of the rows is a file, which may have its own share of nulls.
    nulls = [first] * 3 if rnd.random() < 0.6 else [rate(), rate(), rate()]
    at = 0
    maybe = lambda v: None if rnd.random() < nulls[3 * at // max(rows, 1)] else v
    days = [datetime.date(1600, 1, 1), datetime.date(2999, 12, 31), datetime.date(1969, 12, 31), datetime.date(2020, 1, 31), datetime.date(2020, 2, 29)]
    one = {
        "k": lambda: rnd.randrange(5), "v": lambda: rnd.randrange(-9, 10), "i": lambda: rnd.randrange(-1, 4),
        "z": lambda: None,
        "f": lambda: rnd.choice([0.0, -0.0, 0.5, 1.0, -1.5, 3.0, float("nan"), float("inf"), float("-inf")]),
        "s": lambda: rnd.choice(["a", "b", "ab", "", "A", "äb", "it's", "%", "b a", "1", "12"]),
        "b": lambda: rnd.random() < 0.5, "d": lambda: rnd.choice(days),
        "t": lambda: datetime.datetime.combine(rnd.choice(days), datetime.time(rnd.choice([0, 12, 23]), 59 * rnd.randrange(2), rnd.randrange(2))),
        "n": lambda: decimal.Decimal(rnd.choice(["0.00", "1.50", "-0.25", "3.00", "10.10"])),
    }
    ids = list(range(rows))
    if rnd.random() < 0.5:
        rnd.shuffle(ids)
    def cell(name):
        if name[0] != "l":
            return maybe(one[name]())
        element = name[1:] if name != "ll" else "li"
        return maybe([cell(element) for _ in range(rnd.randrange(4))])
    columns = {"id": ids}
    for name in list(COLUMNS)[1:]:
        columns[name] = []
        for at in range(rows):
            columns[name].append(cell(name))
    # The lists of a row have the same lengths.
    for name in ("lf", "ls"):
        columns[name] = []
        for at, x in enumerate(columns["li"]):
            columns[name].append(None if x is None else [cell(name[1:]) for _ in x])
    return pa.table({c: pa.array(v, ARROW[COLUMNS[c]]) for c, v in columns.items()})
