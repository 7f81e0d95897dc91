"""That what the claims compare is measured: all of it is in the full profile's grids."""

from functools import cache

import pytest
from papers_in_book import PAGES

from labbook import paths
from labbook.claims import claims
from labbook.claims.selection import matches
from labbook.errors import Stopped
from labbook.pipeline.sources import notebooks, parameters
from labbook.study.progress import Progress


@pytest.fixture(params=PAGES)
def study(request, monkeypatch):
    monkeypatch.chdir(paths.checkout())
    monkeypatch.setenv("LABBOOK_PLAN", "1")
    monkeypatch.setenv("LABBOOK_PROFILE", "full")
    monkeypatch.setattr("labbook.systems.openstack.containers.possible", lambda: True)   # also where tests are run
    return request.param


@cache
def planned(study: str, profile: str = "full") -> dict:
    """The notebook's names, once its cells have run in this profile up to where a plan ends: its
    experiments are among them, and nothing is measured."""
    names = {}
    for cell in notebooks.read(paths.notebook(study))["cells"]:
        if cell["cell_type"] != "code":
            continue
        try:
            exec(notebooks.source(cell), names)
        except Stopped:
            return names
        if "parameters" in notebooks.tags(cell):
            names |= parameters.chosen(study, profile)
    raise AssertionError(f"{study} does not complete")


def not_measured(rule: dict, points: list[dict]) -> list[str]:
    """What of a rule no point has: of each arm what it and `where` name together. Where each arm has points, that no
    two of them are alike but for the arms' own parameters."""
    missing, settings = [], []
    for arm in [rule.get("of", {})] + [rule[name] for name in ("than",) if name in rule]:
        wanted = {**rule.get("where", {}), **arm}
        found = [p for p in points if all(matches(p[n], want) for n, want in wanted.items())]
        settings.append({frozenset((name, p[name]) for name in p if name not in arm) for p in found})
        along = rule.get("along")
        if not found:
            missing.append(str(wanted))
        elif along and len({p[along] for p in found}) < 2:
            missing.append(f"two values of {along}")
    return missing or ([] if set.intersection(*settings) else ["a setting of both arms"])


def test_what_the_claims_compare_is_in_the_full_profile(study):
    arms = arms_of(planned(study)["study"].experiments)
    missing = {claim["id"]: not_measured(claim["rule"], arms[claim["experiment"]]) for claim in claims.load(study)
               if claim["rule"]["name"] != "not_testable"}
    assert not {claim: what for claim, what in missing.items() if what}


def arms_of(experiments) -> dict[str, list[dict]]:
    """{experiment: the parameters of each arm of each point}. All repeats are alike, so that one counts."""
    return {name: [arm for point in one.points() if point.repeat == 1 for arm in point.arms]
            for name, one in experiments.items()}


@pytest.mark.parametrize("study", ["ceph_mds"], indirect=True)
def test_a_recovery_is_measured_on_a_cluster_of_its_own(study):
    """A second one would find journals and sessions of the first. Crashes are looked at several in one."""
    experiments = planned(study)["study"].experiments
    blocks = [point.block for point in experiments["recovery"].points()]
    assert len(blocks) == len(set(blocks)) > 3
    crashes = experiments["crash"].points()
    assert len({(point.block, point.order) for point in crashes}) == len(crashes) > len({p.block for p in crashes})


def test_what_is_not_measured_is_named():
    points = [{"load": "none", "size": 1}, {"load": "read", "size": 1}, {"load": "read", "size": 2}]
    two = {"of": {"load": "read"}, "than": {"load": "none"}}
    assert not not_measured(two, points)
    assert not_measured(two | {"where": {"size": {"at_least": 2}}}, points) == [
        "{'size': {'at_least': 2}, 'load': 'none'}"]
    assert not_measured(two | {"along": "size"}, points) == ["two values of size"]
    assert not_measured({"where": {"load": "write"}}, points) == ["{'load': 'write'}"]
    windows = [{"send": 4, "user_send": 2}, {"send": 512, "user_send": 512}]
    assert not_measured({"of": {"send": 4}, "than": {"send": 512}}, windows) == ["a setting of both arms"]
    assert not not_measured({"of": windows[0], "than": windows[1]}, windows)


def test_a_fleet_has_a_plan_of_the_quick_profile(study, monkeypatch, tmp_path):
    monkeypatch.setenv("LABBOOK_PROFILE", "quick")
    monkeypatch.setenv("LABBOOK_FLEET", "fleet-planned")
    monkeypatch.setenv("LABBOOK_RECORDS", str(tmp_path))
    handed = {}
    monkeypatch.setattr(Progress, "hand_out", lambda self, experiment, found: handed.update({experiment: found}))
    planned(study, "quick")
    assert any(one["read"] and one["repeats"] for one in handed.values())
