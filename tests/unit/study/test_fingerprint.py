"""The code key: what counts as a change of what a measurement ran through, and what follows."""

import json

import pytest

from labbook.study import fingerprint as code


@pytest.fixture
def library(root, monkeypatch):
    """A small library: the notebook uses workloads.load (which uses workloads.deep) and, by its
    lab.yml, systems.db; nothing uses workloads.other."""
    base = root / "labbook"
    files = {
        "lab/__init__.py": '_HOMES = {"Lab": "lab"}\n', "lab/lab.py": "from . import wire\n",
        "lab/wire.py": "X = 1\n", "lab/unused.py": "X = 1\n",
        "systems/__init__.py": "", "systems/db.py": 'HELPER = "agent.py"\n',
        "systems/agent.py": "X = 1\n",
        "workloads/__init__.py": "",
        "workloads/load.py": "IDL = 'store.thrift'\n\ndef f(x):\n"
                             "    from labbook.workloads.deep import g\n"
                             "    import_module(f'labbook.workloads.{x}_calls')\n",
        "workloads/a_calls.py": "X = 1\n",
        "workloads/deep.py": '"""Doc."""\nimport labbook.figures\n\n'
                             'def g():\n    """Doc."""\n    return 1\n',
        "workloads/other.py": "X = 1\n", "workloads/store.thrift": "service S {}\n",
        "workloads/other.thrift": "service S {}\n", "figures/__init__.py": "X = 1\n",
        "systems/db.yml": "{}\n",
    }
    for name, text in files.items():
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_text(text)
    cells = ["%matplotlib inline\nfrom labbook.workloads.load import f\n"]
    (root / "notebooks/demo.ipynb").write_text(json.dumps(
        {"cells": [{"cell_type": "code", "source": cells}]}))
    lab = root / "data/papers/demo/lab.yml"
    lab.write_text(lab.read_text() + "systems: [{name: db, host: server}]\n")
    return base


def key(library):
    return code.code_key("demo", library)


def append(text):
    return lambda path: path.write_text(path.read_text() + text)


def replace(old, new):
    return lambda path: path.write_text(path.read_text().replace(old, new))


@pytest.mark.parametrize("name, change", [
    ("workloads/load.py", append("X = 2\n")),
    ("workloads/deep.py", replace("return 1", "return 2")),
    ("systems/db.py", append("X = 2\n")),
    ("systems/agent.py", append("X = 2\n")),
    ("lab/lab.py", append("X = 2\n")),
    ("lab/wire.py", append("X = 2\n")),
    ("workloads/a_calls.py", append("X = 2\n")),
    ("systems/db.yml", append("# versions\n")),
    ("workloads/store.thrift", append("struct T {}\n")),
    ("../data/papers/demo/lab.yml", replace("role: db", "role: db, limits: {cores: 1}")),
])
def test_what_a_measurement_runs_through_counts(library, name, change):
    before = key(library)
    change(library / name)
    assert key(library) != before


@pytest.mark.parametrize("name, change", [
    ("workloads/deep.py", append("\n# a comment\n\n\n")),
    ("workloads/deep.py", replace('"""Doc."""', '"""Other words."""')),
    ("workloads/other.py", append("X = 2\n")),
    ("workloads/other.thrift", append("struct T {}\n")),
    ("lab/unused.py", append("X = 2\n")),
    ("figures/__init__.py", append("X = 2\n")),
    ("../data/papers/demo/lab.yml", append("# a comment\nneeds: {minutes: {quick: 5}}\n")),
    ("../notebooks/demo.ipynb", replace("matplotlib", "config")),
])
def test_what_it_does_not_run_through_does_not(library, name, change):
    before = key(library)
    change(library / name)
    assert key(library) == before


def test_versions_of_packages_count(library, root, monkeypatch):
    lab = root / "data/papers/demo/lab.yml"
    append("needs: {packages: [db-server]}\n")(lab)
    keys = set()
    for version in ("1.0", "1.1"):
        monkeypatch.setattr(code, "_dpkg", lambda names, v=version: (f"{names[0]} {v}",))
        keys.add(key(library))
    assert len(keys) == 2


def test_the_real_library_has_a_key(root):
    assert code.code_key("demo") == code.code_key("demo")
    assert "labbook.lab.lab" in code.modules({"labbook.lab"})


# What follows from a change

@pytest.fixture
def changed(make, measure, labs):
    """A study measured whole, whose code has changed since."""
    study, speed = make()
    study.code_key = "old"
    measure(study, speed)

    def again():
        study, speed = make()
        study.code_key = "new"
        return study, speed
    return again


def test_the_quick_profile_measures_again_and_keeps_the_old(changed, measure):
    study, speed = changed()
    assert list(speed.summary()["stale"]) == [True] * 4
    assert len(measure(study, speed)) == 4
    study.complete()
    assert not speed.summary()["stale"].any()
    assert len(list((study.records("speed").folder / "superseded").iterdir())) == 4


def test_the_full_profile_keeps_and_marks(changed, measure, monkeypatch):
    monkeypatch.setenv("LABBOOK_PROFILE", "full")
    study, speed = changed()
    assert measure(study, speed) == []
    study.complete()
    assert speed.summary()["stale"].all() and study.conditions()["stale"] == 4
    assert "4 of 4 points by earlier code" in study.judge("slower")._repr_html_()


def test_until_it_is_told_to_measure_again(changed, measure, monkeypatch):
    monkeypatch.setenv("LABBOOK_PROFILE", "full")
    monkeypatch.setenv("LABBOOK_REMEASURE", "1")
    study, speed = changed()
    assert len(measure(study, speed)) == 4
    study, speed = changed()
    assert measure(study, speed) == [], "what is of today is not measured twice"


def test_a_failed_remeasurement_fails_the_study_and_keeps_the_old(changed):
    from labbook.errors import SystemFailure
    from labbook.study import PointsFailed

    study, speed = changed()
    for point in speed.remaining():
        with study.attempt(point):
            raise SystemFailure("it died")
    with pytest.raises(PointsFailed, match="4 points"):
        study.complete()
    assert len(speed.summary()) == 4
