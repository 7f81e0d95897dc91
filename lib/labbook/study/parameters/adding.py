"""What `labbook run` is given to measure a claim that a run left out: `-p crowd.repeats 12`; the groups of parameters
of an experiment.

The notebook says which parameter an experiment's repeats and values are from: as
`study.experiment("crowd", repeats=crowd["repeats"], vary=dict(rtt_ms=crowd["rtt_ms"]))` does, or by a group
that a function of the notebook is given beside the experiment's name.
"""

import ast
import json
import shlex

from labbook import paths
from labbook.checks import load_yaml
from labbook.claims.looks import LOOKS
from labbook.claims.selection import has, matches, wanted_arms
from labbook.errors import InputError
from labbook.study.parameters.notebook import code, declared, parsed

REPEATS = "repeats"


def options(study: str, claim: dict, experiment) -> str:
    """The options, such as `-p response.rtt_ms '[0, 300]'`; that it be asked where the notebook has its points, and
    empty where the notebook does not say. InputError where full.yml is no mapping of groups."""
    groups = _groups(study)
    entries = _entries(study, experiment.name, groups)
    if not experiment.declared():
        missing = {REPEATS: None}
    else:
        missing = _missing_values(claim, experiment)
    if not missing:
        return f"--until-decided --claims {claim['id']}"
    if not missing.keys() <= entries.keys():
        return ""
    new = {entries[name]: _value(groups[group][entry], missing[name], _full(study, group, groups[group]).get(entry))
           for name, (group, entry) in entries.items() if name in missing}
    if any(value is None or value == groups[group][entry] for (group, entry), value in new.items()):
        return ""       # nobody names it; or the notebook has it, and points of an earlier one have not
    return " ".join(f"-p {group}.{entry} {_word(value)}" for (group, entry), value in new.items())


def groups_of(study: str, experiments) -> set[str]:
    """The groups that experiments have their repeats from; where the notebook does not say, the one of the experiment's
    name."""
    groups = _groups(study)
    return {_entries(study, name, groups).get(REPEATS, (name, REPEATS))[0] for name in experiments}


def _groups(study: str) -> dict[str, dict]:
    """The notebook's groups of parameters; none of a notebook without parameters."""
    try:
        return {name: value for name, value in declared(study).items() if isinstance(value, dict)}
    except InputError:
        return {}


def _value(now, wanted, full):
    """A parameter's new value. wanted: values that are missing; None for those of the full profile."""
    if wanted is None:
        return full or LOOKS[0] if isinstance(now, int) else full
    if isinstance(now, list):
        return list(dict.fromkeys([*now, *wanted]))
    return wanted[-1]


def _word(value) -> str:
    """A value as a shell takes it."""
    return shlex.quote(value if isinstance(value, str) else json.dumps(value))


def _missing_values(claim: dict, experiment) -> dict:
    """{parameter: values} that the claim selects by and that no point has; None for values that the claim does
    not name, as where it follows a parameter of which there is one value."""
    arms = [arm for point in experiment.declared() for arm in point.arms]
    missing = {}
    for name, want in ((name, want) for arm in wanted_arms(claim) for name, want in arm.items()):
        if any(matches(one.get(name), want) for one in arms):
            continue
        if isinstance(want, dict):      # a range, of which the full profile may have values
            missing[name] = None
        elif missing.get(name, []) is not None:
            missing.setdefault(name, []).append(want)
    rule = claim["rule"]
    chosen = [one for one in arms if any(has(one, arm) for arm in wanted_arms(claim))]
    values = [one.get(rule.get("along")) for one in chosen or arms]
    if "along" in rule and (len(set(values)) < 2 or rule["name"] == "crosses_near" and not (
            min(values) <= rule["at"] - rule["within"] and rule["at"] + rule["within"] <= max(values))):
        missing[rule["along"]] = None
    return missing


def _entries(study: str, experiment: str, groups: dict) -> dict[str, tuple[str, str]]:
    """{parameter of the experiment, or `repeats`: (group, entry) that its values are from}."""
    found = {}
    for cell in code(study) if groups else ():
        for call in ast.walk(parsed(cell)):
            if isinstance(call, ast.Call) and call.args and getattr(call.args[0], "value", None) == experiment:
                found |= _of_call(call, groups)
    return found


def _of_call(call: ast.Call, groups: dict) -> dict[str, tuple[str, str]]:
    found = {}
    for given in call.args[1:]:
        group = getattr(given, "id", None)
        if REPEATS in groups.get(group, {}):
            found[REPEATS] = group, REPEATS
    for keyword in (node for node in ast.walk(call) if isinstance(node, ast.keyword) and node.arg):
        value = keyword.value
        if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Constant):
            group, entry = getattr(value.value, "id", None), value.slice.value
            if entry in groups.get(group, {}):
                found[keyword.arg] = group, entry
    return found


def _full(study: str, group: str, quick: dict) -> dict:
    """A group's entries in full.yml; empty where that says nothing of it. quick: the notebook's."""
    file = paths.papers(study) / "full.yml"
    groups = (load_yaml(file) if file.exists() else None) or {}
    entries = (groups.get(group) if isinstance(groups, dict) else groups) or {}
    if not isinstance(entries, dict):
        raise InputError(f"{entries!r} is no mapping of parameters to values", file=file, key=group,
                         allowed=f"{group}: {{NAME: value}} with {', '.join(quick)}")
    return entries
