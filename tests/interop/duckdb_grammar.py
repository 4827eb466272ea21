"""Random tables and statements that DuckDB and Serrate both know.

A statement is a tree of nodes: texts and nodes in a row. A node with a type is a value of that type or a
query of those columns, and any node below of the same type may stand in its place; an optional node may
be left out. `smaller` lists the trees that are one such step smaller.

Types: integer i, float f, string s, boolean b, date d, timestamp t, decimal n, and `l` before the type of
a list's elements.
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
NULLS = {
    "i": "NULL::BIGINT", "f": "NULL::DOUBLE", "s": "NULL::VARCHAR", "b": "NULL::BOOLEAN", "d": "NULL::DATE",
    "t": "NULL::TIMESTAMP", "n": "NULL::DECIMAL(12,2)", "li": "NULL::BIGINT[]", "lf": "NULL::DOUBLE[]",
    "ls": "NULL::VARCHAR[]", "ll": "NULL::BIGINT[][]",
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
        len(list_filter({li}, lambda q: q > {i}))""",
    "f": """{f} + {f}; {f} - {f}; {f} * {f}; -{f}; abs({f}); CAST({i} AS DOUBLE); {i} / 2e0; {i} + {f}; floor({f}); ceil({f})
        round({f}); trunc({f}); sqrt(abs({f})); power({f}, 2); {lf}[1]; {lf}[-1]; TRY_CAST({s} AS DOUBLE)
        CAST({n} AS DOUBLE); list_max({lf}); {f} % 2e0; extract(epoch FROM {t})""",
    "s": """{s} || {s}; concat({s}, {s}); upper({s}); lower({s}); trim({s}); ltrim({s}, 'a'); substr({s}, 2); left({s}, 1)
        substring({s}, 1, 2); right({s}, 1); left({s}, -1); reverse({s}); replace({s}, 'a', {s}); repeat({s}, 2)
        lpad({s}, 3, 'x'); rpad({s}, 2, 'yz'); CAST({i} AS VARCHAR); CAST({b} AS VARCHAR); CAST({d} AS VARCHAR)
        CAST({n} AS VARCHAR); {ls}[1]; {ls}[{i}]; split_part({s}, 'b', 1); concat_ws('-', {s}, {s})
        translate({s}, 'ab', 'xy'); regexp_replace({s}, 'a+', 'z')""",
    "b": """{b} AND {b}; {b} OR {b}; NOT {b}; {b} IS TRUE; {b} IS NOT TRUE; {b} IS FALSE; {b} IS NOT FALSE; {s} LIKE 'a%'
        {s} NOT LIKE '%a%'; {s} LIKE '_b%'; {s} ILIKE 'A%'; {s} LIKE {s}; starts_with({s}, {s}); contains({s}, {s})
        {i} = {f}; {i} < {f}; {i} >= {n}; {f} > {n}; {d} < {t}; {t} >= {d}; isnan({f}); list_contains({li}, {i})
        list_contains({ls}, {s}); {i} = ANY({li}); {s} = ANY({ls}); {li} < {li}; {ls} < {ls}
        {i:x} <> 0 AND 12 // {=x} > 1; {i:x} = 0 OR 12 // {=x} < 3; {s:x} = '12' AND CAST({=x} AS BIGINT) > 5
        {d} + INTERVAL 1 DAY > {t}; {s} SIMILAR TO 'a.*'; {t} - {t} > INTERVAL '1 day'""",
    "d": """CAST({t} AS DATE); {d} + 1; {d} - 31; CAST({d} + INTERVAL '1 month' AS DATE)
        CAST({d} - INTERVAL '1 year' AS DATE); CAST(date_trunc('month', {d}) AS DATE); TRY_CAST({s} AS DATE)""",
    "t": """CAST({d} AS TIMESTAMP); {t} + INTERVAL '1 month'; {t} - INTERVAL '36 hours'; {t} + INTERVAL '1 day 2 hours'
        date_trunc('hour', {t}); date_trunc('month', {t}); date_trunc('quarter', {t}); {d} + INTERVAL '5 hours'
        {t} + ({t} - {t})""",
    "n": "{n} + {n}; {n} - {n}; -{n}; abs({n}); CAST({i} AS DECIMAL(12,2)); CAST({n} * {n} AS DECIMAL(12,2)); round({n}, 1)",
    "li": """[{i}, {i}]; {li}[2:]; {li}[:1]; {li}[-2:]; {li}[1:2]; list_append({li}, {i}); list_prepend({i}, {li})
        list_reverse({li}); list_transform({li}, lambda q: q + 1); list_transform({li}, lambda q: q * {i})
        list_filter({li}, lambda q: q > 1); list_filter({li}, lambda q: q IS NULL); flatten({ll}); {ll}[1]
        list_filter({li}, lambda q: q <> 0 AND 12 // q > 1)""",
    "lf": "[{f}, {f}]; {lf}[2:]; list_transform({lf}, lambda q: q * 2); CAST({li} AS DOUBLE[]); list_reverse({lf})",
    "ls": "[{s}, {s}]; {ls}[2:]; list_reverse({ls}); list_transform({ls}, lambda q: upper(q)); CAST({li} AS VARCHAR[])",
    "ll": "[{li}, {li}]; {ll}[1:1]; list_append({ll}, {li})",
}


def _all_templates():
    out = {ty: [t.strip() for t in re.split(r";|\n", text)] for ty, text in TEMPLATES.items()}
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
    """Texts and nodes in a row; `role` is a type, a tuple of columns, "optional", or None."""

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
        """What may stand in its place."""
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
        return f"{start}{self.names}"

    # Values. A scope is a list of (text, type).

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
            elif ":" in text:
                # Repeated: a column or a constant, so that both stay equal.
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
        """FROM and WHERE of a query over another table, with or without a condition over both."""
        source, inside = self.base()
        ty = self.pick("iiisdf")
        outer, inner = ([c for c, t in of if t == ty] for of in (scope, inside))
        where = self.value("b", inside)
        if outer and inner and self.chance(0.7):
            where = Node("b", f"{self.pick(inner)} = {self.pick(outer)}", optional(" AND ", where))
        return Node(None, " FROM ", source, optional(" WHERE ", where)), inside

    def subquery(self, scope):
        rest, inside = self.correlated(scope)
        negated = self.pick(["", "NOT "])
        if self.chance(0.4):
            return Node("b", f"{negated}EXISTS (SELECT 1", rest, ")")
        ty = self.pick("iisfdn")
        left, right = self.atom(ty, scope), self.atom(ty, inside)
        return Node("b", left, f" {negated}IN (SELECT ", right, rest, ")")

    def scalar(self, ty, scope):
        rest, inside = self.correlated(scope)
        call = "count(*)" if ty == "i" and self.chance(0.5) else None
        call = [call] if call else [self.pick(["max", "min"]), "(", self.atom(ty, inside), ")"]
        return Node(ty, "(SELECT ", *call, rest, ")")

    # Relations.

    def base(self):
        alias = self.name("r")
        table = self.pick(self.tables)
        return Node(None, f"{table} AS {alias}"), [(f"{alias}.{c}", ty) for c, ty in COLUMNS.items()]

    def relation(self, levels):
        draw = self.random.random()
        if levels == 0 or draw < 0.5:
            return self.base()
        if draw < 0.7:
            query, columns = self.query(levels - 1)
            alias = self.name("q")
            return Node(None, "(", query, f") AS {alias}"), [(f"{alias}.{c}", ty) for c, ty in columns]
        return self.join(levels)

    def join(self, levels):
        (left, a), (right, b) = self.relation(levels - 1), self.relation(0)
        kind = self.pick(["JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN"])
        if kind == "CROSS JOIN":
            return Node(None, left, " CROSS JOIN ", right), a + b
        ty = self.pick(["i", "i", "i", "s", "f", "d", "n", "b", "t", "li"])
        l, r = ([c for c, t in of if t == ty] for of in (a, b))
        on = self.value("b", a + b)
        if l and r:
            sign = self.pick(["=", "=", "=", "=", "IS NOT DISTINCT FROM", "<"])
            on = Node("b", f"{self.pick(l)} {sign} {self.pick(r)}", optional(" AND ", on))
        return Node(None, left, f" {kind} ", right, " ON ", on), a + b

    # Queries.

    def items(self, scope, n=None, types=None, scalars=True):
        items, columns = [], []
        for i in range(n or self.random.randrange(1, 4)):
            ty = self.pick(types or [*SINGLE, *SINGLE, "li", "lf", "ls", "ll"])
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

    def grouped(self, levels):
        source, scope = self.relation(levels)
        keys = self.random.sample(scope, min(len(scope), self.random.randrange(0, 3)))
        items, columns = [], []
        for i, (key, ty) in enumerate(keys):
            items.append(Node(None, f"{key} AS c{i}, "))
            columns.append((f"c{i}", ty))
        for i in range(len(keys), len(keys) + self.random.randrange(1, 3)):
            ty, call = self.aggregate(scope)
            items.append(Node(None, "" if i == len(keys) else ", ", *call, f" AS c{i}"))
            columns.append((f"c{i}", ty))
        by = [" GROUP BY ", ", ".join(key for key, _ in keys)] if keys else []
        having = optional(self.pick([" HAVING count(*) > 1", " HAVING count(*) = 1"])) if self.chance(0.2) else ""
        return ["SELECT ", *items, " FROM ", source, self.where(scope), *by, having], columns

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

    def window(self, scope):
        part = f"PARTITION BY {self.pick(scope)[0]} " if self.chance(0.6) else ""
        key = self.pick([c for c, ty in scope if ty in SINGLE])
        order = f"ORDER BY {key}{self.pick(['', ' DESC', ' NULLS FIRST', ' DESC NULLS LAST'])}, {scope[0][0]}"
        frame = self.pick(["", " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING", " ROWS BETWEEN 2 PRECEDING AND CURRENT ROW"])
        ty = self.pick("ifsdn")
        x = self.value(ty, scope, 1)
        draw = self.random.randrange(6)
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

    def order(self, columns):
        ways = ["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]
        return ", ".join(f"{c}{self.pick(ways)}" for c, _ in self.random.sample(columns, len(columns)))

    def limited(self, levels):
        query, columns = self.query(levels - 1)
        offset = self.pick(["", "", " OFFSET 1", " OFFSET 4"])
        limit = f" LIMIT {self.random.randrange(8)}{offset}"
        return ["SELECT * FROM (", query, f") AS z ORDER BY {self.order(columns)}{limit}"], columns

    def statement(self):
        """A statement, and whether its rows come in one order."""
        self.names = 0
        query, columns = self.query(2)
        if self.chance(0.6):
            return query, False
        limit = optional(f" LIMIT {self.random.randrange(9)}", optional(f" OFFSET {self.random.randrange(5)}"))
        return Node(None, "SELECT * FROM (", query, f") AS z ORDER BY {self.order(columns)}", limit), True


def table(rnd, rows):
    """A random table of all types: nulls, empty lists, times far away, floats that are no numbers."""
    nulls = rnd.choice([0, 0.15, 0.3])
    maybe = lambda v: None if rnd.random() < nulls else v
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
        columns[name] = [cell(name) for _ in range(rows)]
    # Elements of li are small integers.
    return pa.table({c: pa.array(v, ARROW[COLUMNS[c]]) for c, v in columns.items()})
