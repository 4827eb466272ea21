"""Writes cases.txt: columns of doubles, and aggregates of them that are computed in exact rational arithmetic.

A line is `name|x ..|y ..|aggregate=value ..`; numbers are the bits of doubles in hexadecimal, `-` is NULL.
Quotients of sums are rounded once; roots (`stddev`, `corr`) are rounded from 300 bits or more.
"""

import math
import random
import struct
from fractions import Fraction
from pathlib import Path

BITS = 400


def bits(value):
    return struct.pack(">d", value).hex()


def rounded(value):
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def root(value):
    shift = BITS + max(0, value.denominator.bit_length() - value.numerator.bit_length())
    return Fraction(math.isqrt((value.numerator << 2 * shift) // value.denominator), 1 << shift)


def aggregates(x, y):
    x, y = [Fraction(v) for v in x], [Fraction(v) for v in y]
    n, sx, sy = len(x), sum(x), sum(y)
    cxx = n * sum(v * v for v in x) - sx * sx
    cyy = n * sum(v * v for v in y) - sy * sy
    cxy = n * sum(a * b for a, b in zip(x, y)) - sx * sy
    pairs = n * (n - 1)
    out = {
        "sum(x)": sx,
        "avg(x)": sx / n,
        "var_pop(x)": cxx / n**2,
        "var_samp(x)": cxx / pairs if pairs else None,
        "stddev_pop(x)": root(cxx / n**2),
        "stddev_samp(x)": root(cxx / pairs) if pairs else None,
        "covar_pop(y, x)": cxy / n**2,
        "covar_samp(y, x)": cxy / pairs if pairs else None,
        "corr(y, x)": cxy / root(cxx * cyy) if cxx and cyy else None,
        "regr_slope(y, x)": cxy / cxx if cxx else None,
        "regr_intercept(y, x)": (sy - cxy / cxx * sx) / n if cxx else None,
        "regr_r2(y, x)": (cxy**2 / (cxx * cyy) if cyy else 1) if cxx else None,
        "regr_avgx(y, x)": sx / n,
        "regr_avgy(y, x)": sy / n,
        "regr_sxx(y, x)": cxx / n,
        "regr_syy(y, x)": cyy / n,
        "regr_sxy(y, x)": cxy / n,
    }
    return {name: None if v is None else rounded(v) for name, v in out.items()}


def cases():
    rng = random.Random(7)
    any_bits = lambda: next(
        v for v in iter(lambda: struct.unpack(">d", rng.randbytes(8))[0], None) if math.isfinite(v)
    )
    makers = {
        "small integers": lambda: float(rng.randint(-9, 9)),
        "uniform": lambda: rng.uniform(-1000, 1000),
        "shifted": lambda: 1e9 + rng.random() * 1e-3,
        "subnormal": lambda: rng.randint(-9, 9) * 5e-324,
        "tiny": lambda: rng.uniform(-1, 1) * 1e-160,
        "huge": lambda: rng.choice([-1, 1]) * rng.uniform(1e307, 1.7e308),
        "any bits": any_bits,
        "many sizes": lambda: rng.choice([-1, 1]) * 10.0 ** rng.randint(-20, 20),
        "tenths": lambda: rng.randint(-30, 30) / 10,
    }
    for name, make in makers.items():
        for n in [1, 2, 3, 3, 5, 12]:
            yield name, [make() for _ in range(n)], [make() for _ in range(n)]
    for name in ["uniform", "any bits", "huge"]:
        x = [makers[name]() for _ in range(5)]
        yield name + " and its opposite", x + [-v for v in x] + [rng.random()], [rng.random() for _ in range(11)]
    x = [makers["uniform"]() for _ in range(9)]
    yield "on a line", x, [2 * v for v in x]
    yield "constant", [0.1] * 7, x[:7]
    yield "cancelling", [1e16, 1.0, -1e16], [1.0, 2.0, 3.0]
    yield "too large", [1e308, 1e308, -1e308], [1e308, 1e308, 1e308]


def main():
    lines = []
    for name, x, y in cases():
        found = aggregates(x, y)
        values = ";".join(f"{k}={'-' if v is None else bits(v)}" for k, v in found.items())
        lines.append("|".join([name, " ".join(map(bits, x)), " ".join(map(bits, y)), values]))
    Path(__file__).with_name("cases.txt").write_text("\n".join(lines) + "\n")


main()
