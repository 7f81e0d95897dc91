"""Which point is shown."""

from types import SimpleNamespace

import pytest

from labbook.errors import InputError
from labbook.study.explorer import showing


def records(*metas):
    known = {meta["key"]: meta for meta in metas}
    return SimpleNamespace(keys=lambda: set(known), meta=known.get, rows=lambda key: f"rows of {key}",
                           series=lambda key, name: f"{name} of {key}")


def meta(key, **more):
    return {"key": key, "label": f"point {key}", "series": {"hosts": "digest"}, **more}


FOLDERS = {"calls": records(meta("ab12cd"), meta("ab12ef")), "writes": records(meta("0000aa", series={}))}


def test_the_beginning_of_an_id_names_one_point_of_any_experiment():
    assert showing.by_prefix(FOLDERS, "ab12c")[1]["key"] == "ab12cd"
    assert showing.by_prefix(FOLDERS, "0000")[0] is FOLDERS["writes"]
    with pytest.raises(InputError, match=r"2 recorded points begin so \(allowed: ab12cd, ab12ef\)"):
        showing.by_prefix(FOLDERS, "ab12")
    with pytest.raises(InputError, match="no recorded point begins so.*calls, writes"):
        showing.by_prefix(FOLDERS, "ffff")


def test_a_damaged_record_is_no_point():
    damaged = SimpleNamespace(keys=lambda: {"ab12"}, meta=lambda key: None, set_aside=["the record ab12 is damaged"])
    with pytest.raises(InputError, match="ab12: the record ab12 is damaged.*whole record"):
        showing.by_prefix({"calls": damaged}, "ab12")


def test_a_point_is_drawn_from_its_series_and_rows(monkeypatch):
    monkeypatch.setattr(showing, "draw", lambda *given: given)
    assert showing.show(FOLDERS["calls"], meta("ab12cd")) == (meta("ab12cd"), "hosts of ab12cd", "rows of ab12cd")


def test_without_series_it_says_what_to_do():
    with pytest.raises(InputError, match="--remeasure"):
        showing.show(FOLDERS["writes"], meta("0000aa", series={}))


def test_a_point_or_its_parameters(monkeypatch):
    monkeypatch.setattr(showing, "draw", lambda found, *_: found["key"])
    experiment = SimpleNamespace(name="calls", study=SimpleNamespace(records=lambda _: FOLDERS["calls"]))
    assert showing.of_experiment(experiment, SimpleNamespace(key="ab12ef"), {}) == "ab12ef"
    for point, parameters in ((SimpleNamespace(key="ab12ef"), {"clients": 1}), (SimpleNamespace(key="none"), {})):
        with pytest.raises(InputError):
            showing.of_experiment(experiment, point, parameters)
