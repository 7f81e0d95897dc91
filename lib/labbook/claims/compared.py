"""What a claim's number is, in words: "Cassandra / MySQL, mean time (ms)" """

from functools import lru_cache

from labbook import paths
from labbook.claims import paper_file

# What stands between the arms and the metric, of rules that compare over a parameter.
_OVER = {"grows_with": "largest {along} / smallest", "grows_alike": "growth over {along}",
         "grows_less": "growth over {along}", "grows_slower": "slope over {along}",
         "differs_over": "between values of {along}", "scales_with": "exponent of {along}",
         "rises_by": "slope over {along}", "proportional": "exponent of {along}"}

# Units at the end of a metric's or a parameter's name, the longest first.
_UNITS = {"kib_per_cpu": "KB a percent of CPU", "us_per_call": "µs a call", "kib_per_s": "KB a second",
          "mb_per_s": "MB a second", "per_s": "a second", "per_call": "a call", "round_trips": "round trips",
          "ms": "ms", "us": "µs", "mb": "MB", "kb": "KB", "gb": "GB", "s": "s"}
_WORDS = {"mean": "mean time", "p50": "median time", "p95": "95th percentile", "p99": "99th percentile",
          "own": "own time", "rtt": "round trip", "rate": "rate", "wan": "WAN", "mds": "MDS", "vm": "VM", "cpu": "CPU"}


def words(study: str, claim: dict) -> str:
    """What is over what, of which metric: "Cassandra / MySQL, mean time (ms)". Empty for a claim without a
    number. Values are named as paper.yml names them."""
    rule, known = claim["rule"], _names(study)
    if not claim.get("metric"):
        return ""
    of, than, metric = rule.get("of", {}), rule.get("than"), plain(claim["metric"])
    if rule["name"] == "crosses_near":
        return f"{plain(rule['along'])} at which {_ratio(of, than, known)} falls below 1, {metric}"
    over = _OVER.get(rule["name"], "").format(along=plain(rule.get("along", "")))
    arms = _ratio(of, than, known) if than else ", ".join(_value(k, v, known) for k, v in of.items())
    return ", ".join(part for part in (arms, over, metric) if part)


def plain(name: str) -> str:
    """The name of a metric or a parameter for readers: "mean_ms" is "mean time (ms)"."""
    if name in _UNITS:
        return _UNITS[name]
    text, unit = _parted(name)
    if not unit:
        return text
    return f"{text} {unit}" if unit.startswith("a ") else f"{text} ({unit})"


def with_value(name: str, value) -> str:
    """A parameter and its value for readers: "round trip 500 ms"."""
    return " ".join(filter(None, (*_parted(name)[:1], str(value), _parted(name)[1])))


def _parted(name: str) -> tuple[str, str]:
    """(words, unit or empty) of a name such as "mean_ms"."""
    unit = next((unit for unit in _UNITS if name.endswith(f"_{unit}")), "")
    parts = name.removesuffix(f"_{unit}").split("_")
    return " ".join(_WORDS.get(part, part) for part in parts), _UNITS.get(unit, "")


def _ratio(of: dict, than: dict, known) -> str:
    """The values in which two arms differ."""
    return " / ".join(" and ".join(_value(key, arm[key], known) for key in of if of[key] != than[key])
                      for arm in (of, than))


def _value(parameter, value, known) -> str:
    text = str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)
    named = known.get(f"{parameter} {text}", known.get(value) if isinstance(value, str) else None)
    if named not in (None, ""):
        return str(named)       # YAML reads some names as numbers
    return text.replace("_", " ") if isinstance(value, str) else with_value(parameter, text)


@lru_cache
def _names(study: str) -> dict:
    """The `names` of a study's paper.yml; empty without that file."""
    file = paths.papers(study) / "paper.yml"
    return (paper_file.load(file).get("names") or {}) if file.is_file() else {}
