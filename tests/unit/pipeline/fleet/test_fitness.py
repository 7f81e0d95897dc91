"""Which machines may measure a study."""

from types import SimpleNamespace

import pytest

from labbook.pipeline.fleet import fitness


@pytest.fixture
def compare(monkeypatch):
    here = SimpleNamespace(code="c1", versions={"python": "3.11.7"})
    monkeypatch.setattr(fitness, "fingerprint", lambda study: here)
    return fitness.Fitness(["s"], {"small": frozenset({"other"})})


def about(code="c1", free=2**40, **versions):
    return {"free_bytes": free, "studies": {"s": {"code": code, "versions": {"python": "3.11.7", **versions}}}}


def test_a_machine_with_the_same_code_and_versions_may(compare):
    assert compare.why_not("a", "s", about(mariadb="10.11")) is None


@pytest.mark.parametrize("name, found, why", [
    ("small", about(), "does not give it this study"),
    ("a", about(code="c2"), "different measuring code"),
    ("a", about(free=2**20), "disk is full"),
    ("a", about() | {"studies": {}}, "did not say"),
    ("a", about() | {"studies": {"s": {"error": "no such study"}}}, "no such study"),
    ("a", about(python="3.12.1"), "python 3.12.1 (here: 3.11.7)"),
])
def test_another_may_not(compare, name, found, why):
    assert why in compare.why_not(name, "s", found)


def test_what_is_not_installed_here_is_the_same_on_all_machines(compare):
    compare.why_not("a", "s", about(mariadb="10.11"))
    assert compare.why_not("b", "s", about(mariadb="11.4")) == "other versions: mariadb 11.4 (a: 10.11)"
