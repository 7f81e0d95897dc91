"""Points of two systems with made-up times, and how a rule judges them."""

from labbook.claims.rules import decide

PARAMETERS = ("system", "op", "clients")
AB = {"of": {"system": "a"}, "than": {"system": "b"}}


def rows(time, repeats=6, clients=(1, 10, 50), ops=("read",), limited=()):
    """`time(system, clients, repeat)` in ms; `limited`: counts at which clients limit system a."""
    return [{"system": s, "op": op, "clients": c, "repeat": r, "mean_ms": time(s, c, r),
             "client_limited": int(s == "a" and c in limited)}
            for r in range(1, repeats + 1) for s in "ab" for op in ops for c in clients]


def judged(rule, data):
    return decide({"id": "x", "metric": "mean_ms", "rule": rule}, data, PARAMETERS)


def factor(value):
    return lambda s, c, r: (value if s == "a" else 1.0) * c * (1 + r / 100)


def growing(of, than):
    return lambda s, c, r: 5.0 + (of if s == "a" else than) * c + r / 100


def noisy(s, c, r):
    return c * ((1.5, 0.7, 1.4)[r % 3] if s == "a" else 1.0)


def around_one(s, c, r):
    return c * ((0.99, 1.01)[r % 2] if s == "a" else 1.0)
