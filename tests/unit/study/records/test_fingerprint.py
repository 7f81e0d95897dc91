"""The fingerprint: what counts as a change of what a measurement ran through, and what follows."""

import importlib
import json
import os
import shutil
from fnmatch import fnmatchcase

import pytest
import yaml
from papers_in_book import PAGES

from labbook.study.records import fingerprint as fingerprints
from labbook.study.records.fingerprint import LIBRARY, Fingerprint, fingerprint, reached

CELLS = [
    "# parameters\nrepeats = 3\n", "%matplotlib inline\nfrom labbook.study import Study\n"
    "from labbook.workloads.load import f\nfrom labbook.workloads import shapes as known\n",
    "from labbook import figures\nfigures.topology(study)\nLOAD = 30\n\ndef drive(point):\n    return f(point, LOAD) + known.area(2)\n",
    "study = Study('demo')\nspeed = study.experiment('speed', vary=dict(x=[1, 2]), repeats=repeats, hosts={1: ['a']})\n"
    "for point in speed.remaining():\n    drive(point)\nstudy.complete()\n",
    "shown = 1\nprint(shown)\n",
]


@pytest.fixture
def library(root):
    """A small library: the notebook uses workloads.load (which uses workloads.deep) and, by its
    lab.yml, systems.db; nothing uses workloads.other."""
    base = root / "labbook"
    files = {
        "lab/__init__.py": '_HOMES = {"Lab": "lab"}\n\ndef __getattr__(name):\n    return _HOMES\n',
        "lab/lab.py": "from . import wire\n\nclass Lab:\n    up = wire.X\n",
        "lab/wire.py": "X = 1\nUNUSED = 2\n", "lab/unused.py": "X = 1\n",
        "systems/__init__.py": 'REGISTRY = {"db": ("store.db", "DB")}\n',
        "systems/store/__init__.py": "",
        "systems/store/db.py": "import yaml\nfrom pathlib import Path\n\nHELPER = 'agent.py'\n"
                               "FILES = Path(__file__).with_name('db.yml')\n"
                               "PROGRAM = Path(__file__).with_name('on_host') / 'server'\n\n"
                               "class DB:\n    files = (HELPER, FILES, PROGRAM)\n"
                               "    loads = yaml.safe_load\n",
        "systems/store/agent.py": "X = 1\n", "systems/store/db.yml": "{}\n",
        "systems/store/other.yml": "{}\n",
        "systems/store/on_host/server/__main__.py": "X = 1\n",
        "systems/store/on_host/server/run.sh": "exit 0\n",
        "workloads/__init__.py": "",
        "workloads/load.py": "import os\nfrom labbook.workloads.deep import g as deep\n\n"
                             "def f(x, load):\n    import_module(f'{__package__}.calls.{x}')\n"
                             "    return deep() + compile_c()\n\n"
                             "def compile_c():\n    return open(Path(__file__).parent / 'sources')\n",
        "workloads/sources/main.c": "int main() {}\n",
        "workloads/deep.py": '"""Doc."""\nimport labbook.figures\n\n'
                             'def g() -> int:\n    """Doc."""\n    return 1\n\ndef unused():\n    pass\n',
        "workloads/shapes.py": "def area(x):\n    return x * 2\n",
        "workloads/other/__init__.py": "", "workloads/other/more.py": "X = 1\n",
        "figures/__init__.py": "X = 1\n",
        "study/summary.py": "def summarise(rows):\n    return sum(rows)\n",
        "papers/demo/experiments.py": "from labbook.papers.demo.analysis import mean\n\n"
                                      "def run():\n    return mean()\n",
        "papers/demo/analysis.py": "def mean():\n    return 2\n",
        "papers/demo/figures.py": "X = 1\n", "papers/other/experiments.py": "X = 1\n",
        "papers/demo/protocols/wire.py": "X = 1\n", "papers/other/protocols/wire.py": "X = 1\n",
        "papers/demo/null_servers/wire.py": "X = 1\n", "papers/demo/systems.py": "X = 1\n",
        "workloads/one.py": "LEFT = 3\n\ndef left():\n    return LEFT\n",
        "workloads/two.py": "RIGHT = 5\n\ndef left():\n    return RIGHT\n\ndef both():\n"
                            "    return left() - one()\n\ndef one():\n    return both()\n",
    }
    for name, text in files.items():
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_text(text)
    cells = [{"cell_type": "code", "source": cell.splitlines(True),
              "metadata": {"tags": ["parameters"] if "parameters" in cell else []}} for cell in CELLS]
    (root / "notebooks/demo.ipynb").write_text(json.dumps({"cells": cells}))
    lab = root / "data/papers/demo/lab.yml"
    lab.write_text(lab.read_text() + "systems: [{name: db, host: server}]\n")
    return base


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch, request):
    if "library" in request.fixturenames:
        monkeypatch.setenv("LABBOOK_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(fingerprints, "_needed_by", lambda system, study: set())


def code(library):
    return fingerprint("demo", library).code


def append(text):
    return lambda path: path.write_text(path.read_text() + text)


def replace(old, new):
    def change(path):
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))
    return change


@pytest.mark.parametrize("name, change", [
    ("workloads/load.py", replace("deep() +", "2 * deep() +")),
    ("workloads/deep.py", replace("return 1", "return 2")),
    ("workloads/shapes.py", replace("x * 2", "x * 3")),
    ("workloads/sources/main.c", append("int x;\n")),
    ("systems/store/db.py", append("DB.more = 1\n")),
    ("systems/store/agent.py", append("X = 2\n")),
    ("systems/store/db.yml", append("a: 1\n")),
    ("systems/store/on_host/server/__main__.py", append("X = 2\n")),
    ("systems/store/on_host/server/run.sh", append("exit 1\n")),
    ("lab/lab.py", replace("up = ", "down = ")),
    ("lab/wire.py", replace("X = 1", "X = 2")),
    ("lab/wire.py", append("print(X)\n")),
    ("study/summary.py", replace("sum", "max")),
    ("papers/demo/experiments.py", replace("mean()", "mean() + 1")),
    ("papers/demo/analysis.py", replace("return 2", "return 3")),
    ("papers/demo/protocols/wire.py", replace("X = 1", "X = 2")),
    ("papers/demo/null_servers/wire.py", replace("X = 1", "X = 2")),
    ("papers/demo/systems.py", replace("X = 1", "X = 2")),
    ("../data/papers/demo/lab.yml", replace("role: db", "role: db, limits: {cores: 1}")),
    ("../notebooks/demo.ipynb", replace("LOAD = 30", "LOAD = 31")),
    ("../notebooks/demo.ipynb", replace("drive(point)\\n\", \"study", "drive(2)\\n\", \"study")),
    ("../notebooks/demo.ipynb", replace("hosts={1: ['a']}", "hosts={1: ['b']}")),
])
def test_what_a_measurement_runs_through_counts(library, name, change):
    before = code(library)
    change(library / name)
    assert code(library) != before


MEASURES = """
def counted(call):
    return call

def rate(calls, seconds=1, *, most=1):
    if calls < most:
        return calls + seconds
    return [call for call in calls if call.ok][0]

def run(calls):
    with open(calls) as file:
        return rate(file, most=1)
"""


@pytest.mark.parametrize("old, new", [
    ("calls < most", "calls <= most"), ("calls + seconds", "calls - seconds"), ("if calls <", "while calls <"),
    ("seconds=1, *", "seconds=2, *"), ("most=1):\n", "most=2):\n"), ("rate(file, most=1)", "rate(file, most=2)"),
    ("rate(file, most=1)", "rate(file, seconds=1)"), ("def rate", "@counted\ndef rate"), (" if call.ok", ""),
    ("call.ok", "call.late"), ("[0]", "[1]"), ("open(calls)", "open(calls, 'b')"),
    ("def run(calls):", "def run(*calls):"),
])
def test_a_small_edit_of_what_a_measurement_runs_through_counts(library, old, new):
    file = library / "papers/demo/experiments.py"
    file.write_text(MEASURES)
    before = code(library)
    replace(old, new)(file)
    assert code(library) != before


@pytest.mark.parametrize("name, change", [
    ("workloads/deep.py", append("\n# a comment\n\n\n")),
    ("workloads/deep.py", replace('"""Doc."""', '"""Other words."""')),
    ("workloads/deep.py", replace("-> int", "-> float")),
    ("workloads/deep.py", replace("    pass", "    return 3")),
    ("workloads/load.py", replace("import os\n", "import os, sys\n")),
    ("workloads/other/more.py", append("X = 2\n")),
    ("systems/store/other.yml", append("a: 1\n")),
    ("systems/__init__.py", append("# of systems\nX = 1\n")),
    ("lab/unused.py", append("X = 2\n")),
    ("lab/wire.py", replace("UNUSED = 2", "UNUSED = 3")),
    ("figures/__init__.py", append("X = 2\n")),
    ("papers/other/experiments.py", append("X = 2\n")),
    ("papers/other/protocols/wire.py", append("X = 2\n")),
    ("../data/papers/demo/lab.yml", append("# a comment\nneeds: {minutes: {quick: 5}}\n")),
    ("../data/papers/demo/lab.yml", append("quick: {claims: headline, seconds: 60}\n")),
    ("../notebooks/demo.ipynb", replace("matplotlib", "config")),
    ("../notebooks/demo.ipynb", replace("repeats = 3", "repeats = 6")),
    ("../notebooks/demo.ipynb", replace("x=[1, 2]", "x=[1, 2, 3]")),
    ("../notebooks/demo.ipynb", replace("shown = 1", "shown = 2")),
    ("../notebooks/demo.ipynb", replace("figures.topology(study)", "figures.lab(study, wide=True)")),
])
def test_what_it_does_not_run_through_does_not(library, name, change):
    before = code(library)
    change(library / name)
    assert code(library) == before


def test_a_renamed_module_a_move_a_split_and_a_merge_change_nothing(library, root):
    before = code(library)
    page = root / "notebooks/demo.ipynb"
    (library / "workloads/shapes.py").rename(library / "workloads/outlines.py")
    replace("import shapes as known", "import outlines")(page)
    replace("known.area", "outlines.area")(page)
    assert code(library) == before, "renamed, and called by its new name"
    (library / "workloads/deep.py").rename(library / "workloads/other/depth.py")
    replace("labbook.workloads.deep import g as deep", "labbook.workloads.other import depth")(
        library / "workloads/load.py")
    replace("deep()", "depth.g()")(library / "workloads/load.py")
    assert code(library) == before, "moved to another package, and imported in another way"
    load = library / "workloads/load.py"
    rest, _, split = load.read_text().partition("def compile_c")
    load.write_text("from labbook.workloads.parts import compile_c\n" + rest)
    (library / "workloads/parts.py").write_text("def compile_c" + split)
    assert code(library) == before, "split"
    shapes = library / "workloads/outlines.py"
    append(shapes.read_text())(library / "workloads/parts.py")
    shapes.unlink()
    replace("import outlines", "import parts")(page)
    replace("outlines.area", "parts.area")(page)
    assert code(library) == before, "merged"
    (library / "systems/store").rename(library / "systems/database")
    replace("store.db", "database.db")(library / "systems/__init__.py")
    (library / "systems/database/agent.py").rename(library / "systems/database/jamm.py")
    replace("agent.py", "jamm.py")(library / "systems/database/db.py")
    assert code(library) == before, "a package and a program"


USERS = """
import labbook.workloads.one as first
import labbook.workloads.two as second

def a():
    return first.left()

def b():
    return second.left() + second.both()

def run():
    return a(), b(), first.left() - second.left() - first.left()
"""


@pytest.mark.parametrize("name, change", [
    ("workloads/two.py", replace("5", "3")),    # what another constant has
    ("papers/demo/more.py", replace("def a():\n    return first", "def a():\n    return second")),
    ("papers/demo/more.py", lambda path: (
        replace("def a():\n    return first", "def a():\n    return second")(path),
        replace("return second.left() +", "return first.left() +")(path))),     # swapped
    ("papers/demo/more.py", replace("- first.left()", "- second.left()")),
])
def test_which_definition_a_name_stands_for_counts(library, name, change):
    (library / "papers/demo/more.py").write_text(USERS)
    (library / "papers/demo/experiments.py").write_text("from labbook.papers.demo.more import run\n")
    before = code(library)
    change(library / name)
    assert code(library) != before


def test_a_move_of_definitions_of_the_same_name_changes_nothing(library):
    (library / "papers/demo/more.py").write_text(USERS)
    (library / "papers/demo/experiments.py").write_text("from labbook.papers.demo.more import run\n")
    before = code(library)
    (library / "workloads/one.py").rename(library / "lab/first.py")
    replace("labbook.workloads.one", "labbook.lab.first")(library / "papers/demo/more.py")
    assert code(library) == before, "renamed"
    two = library / "workloads/two.py"
    (library / "workloads/right.py").write_text("RIGHT = 5\n")
    replace("RIGHT = 5\n", "from labbook.workloads import right\n")(two)
    replace("return RIGHT", "return right.RIGHT")(two)
    assert code(library) == before, "a constant that one module refers to"
    rest, _, split = two.read_text().partition("def one")
    two.write_text("from labbook.workloads.three import one\n\n" + rest)
    (library / "workloads/three.py").write_text(
        "from labbook.workloads import two\n\ndef one" + split.replace("both", "two.both"))
    assert code(library) == before, "one of two functions that call each other"


def test_models_of_disks_count_only_where_lab_yml_gives_a_host_one(library, root):
    (library / "lab/disk").mkdir()
    (library / "lab/disk/__init__.py").touch()
    models, lab = library / "lab/disk/models.py", root / "data/papers/demo/lab.yml"
    models.write_text("X = 1\n")
    replace("class Lab:", "from labbook.lab.disk import models\n\nclass Lab:\n    disk = models.X")(library / "lab/lab.py")
    before = code(library)
    models.write_text("X = 2\n")
    assert code(library) == before
    given = yaml.safe_load(lab.read_text())
    next(iter(given["hosts"].values()))["limits"] = {"disk": {"size": "1G", "model": "hdd_2010"}}
    lab.write_text(yaml.safe_dump(given))
    before = code(library)
    models.write_text("X = 3\n")
    assert code(library) != before


def test_a_constant_that_becomes_what_another_is_counts_in_this_library(tmp_path, monkeypatch):
    monkeypatch.setenv("LABBOOK_CACHE", str(tmp_path / "cache"))
    copied = tmp_path / "labbook"
    shutil.copytree(LIBRARY, copied, ignore=shutil.ignore_patterns("__pycache__"))
    before = fingerprint("cms_scalability", copied).code
    assert before == fingerprint("cms_scalability").code
    replace("TRIES = 3 ", "TRIES = 8 ")(copied / "workloads/keyvalue/on_host/contents.py")
    assert fingerprint("cms_scalability", copied).code != before


def test_another_of_two_alternatives_is_named(library, root, monkeypatch):
    append("needs: {packages: [java-17 | java]}\n")(root / "data/papers/demo/lab.yml")
    given = {"java-17": "17.0", "java": "2:1"}
    monkeypatch.setattr(fingerprints, "_dpkg", lambda names: {
        name: given[name] for name in names if name in given})
    before = fingerprint("demo", library)
    assert before.versions["java-17"] == "17.0" and "java" not in before.versions
    del given["java-17"]
    now = fingerprint("demo", library)
    assert now.differs(before.code, before.versions) == ["java-17 17.0 (now java 2:1)"]
    assert now.differs(now.code, {}) == [] == now.differs(now.code, {"java": "2:1"})
    del given["java"]
    assert fingerprint("demo", library).differs(now.code, before.versions) == [], "nothing installed"


def test_another_python_is_named_but_not_the_packages_of_programs_in_debians(library, monkeypatch):
    (library / "systems/store/on_host/server/__main__.py").write_text("import pandas\npandas.X\n")
    found = fingerprint("demo", library)
    assert "python pandas" not in found.versions and "python pyyaml" in found.versions
    earlier = found.versions | {"python": "3.9.1"}
    assert found.differs(found.code, earlier) == [f"python 3.9.1 (now {found.versions['python']})"]


def test_another_version_of_a_server_or_a_package_is_named(library, root, monkeypatch):
    append("needs: {packages: [db-server, procps]}\n")(root / "data/papers/demo/lab.yml")
    given = {"db-server": "1.0"}
    monkeypatch.setattr(fingerprints, "_dpkg", lambda names: {
        name: given[name] for name in names if name in given})
    before = fingerprint("demo", library)
    assert before.versions["db-server"] == "1.0" and "python pyyaml" in before.versions
    given["db-server"] = "1.1"
    now = fingerprint("demo", library)
    assert now.code == before.code
    assert now.differs(before.code, before.versions) == ["db-server 1.0 (now 1.1)"]
    assert now.differs("other", before.versions)[0] == "code"
    assert now.differs(now.code, {"db-server": "1.1", "no-more": "2"}) == []


# The library as it is

# In no study's fingerprint: the registry of systems (a system's class counts, not where it lies),
# what only draws, and what a page's parameters may be (each point's key has their values).
LEFT_OUT = ("systems/__init__.py", "papers/*/figures.py", "papers/cloud_platforms/parameters.py")


@pytest.fixture(scope="module")
def of_all():
    return {study: reached(study) for study in PAGES}


def test_all_that_measures_is_in_some_studys_fingerprint(of_all):
    modules = set().union(*(found.modules() for found in of_all.values()))
    files = set().union(*(found.files for found in of_all.values()))
    unreached = []
    for path in sorted(p for room in ("systems", "workloads", "papers")
                       for p in (LIBRARY / room).rglob("*")):
        name = str(path.relative_to(LIBRARY))
        if path.is_dir() or path.suffix == ".pyc" or any(fnmatchcase(name, out) for out in LEFT_OUT):
            continue
        if path.suffix != ".py":
            unreached += [name] * (name not in files)
        elif _module(name) not in modules and _defines(path):
            unreached.append(name)
    assert not unreached, "reached by no study: import it where it is used, or say why not here"


def _module(name: str) -> str:
    return ".".join(("labbook", *name.removesuffix(".py").split("/"))).removesuffix(".__init__")


def _defines(path) -> bool:
    from labbook.study.records.definitions import parse

    name = str(path.relative_to(LIBRARY))
    return bool(parse(path.read_text(), _module(name), path, LIBRARY,
                      path.name == "__init__.py").definitions)


@pytest.mark.parametrize("root", fingerprints.ROOTS)
def test_where_it_starts_is_there(root, of_all):
    module, name = root.split(":")
    place = getattr(importlib.import_module(module), name).__module__     # a package hands on what its modules define
    assert all((place, name) in found.definitions for found in of_all.values())


def test_known_parts_count(of_all):
    """What an earlier key left out."""
    cloud, ceph = of_all["cloud_platforms"], of_all["ceph_mds"]
    for found, name in ((ceph, "ceph_tools"), (cloud, "openstack_plugin"),
                        (of_all["cms_scalability"], "null_server")):
        assert any(name in module for module in found.modules()), name
    assert any("guest_files" in name for name in cloud.files)
    assert any(name.endswith(".c") for name in cloud.files)
    assert any(name.endswith("keystone.txt") for name in of_all["wan_keystone"].files)
    assert any(name.endswith("versions.yml") for name in of_all["cassandra_elasticity"].files)
    assert not any("labbook.figures" in m or "pipeline" in m
                   for found in of_all.values() for m in found.modules())


def test_an_unchanged_library_is_not_parsed_again(root, tmp_path, monkeypatch):
    from labbook.study.records import definitions

    monkeypatch.setenv("LABBOOK_CACHE", str(tmp_path / "cache"))
    first = fingerprint("demo")
    parsed = []
    real = definitions.parse
    monkeypatch.setattr(definitions, "parse", lambda *given: parsed.append(given) or real(*given))
    assert fingerprint("demo") == first and not parsed


def test_a_file_that_a_module_names_counts_once_it_is_there(library):
    agent = library / "systems/store/agent.py"
    agent.unlink()
    missing = code(library)
    agent.write_text("X = 1\n")
    there = code(library)
    agent.write_text("X = 23\n")
    assert len({missing, there, code(library)}) == 3


def test_the_cache_of_definitions_is_one_file_for_all_checkouts_and_forgets_what_is_gone(tmp_path, monkeypatch):
    from labbook.study.records import definitions

    monkeypatch.setenv("LABBOOK_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir()
    unused, in_use = (tmp_path / "cache" / f"definitions-3-11-{name}.json" for name in ("unused", "in_use"))
    for path in (unused, in_use):
        path.write_text("{}")
    os.utime(unused, (0, 0))
    for folder in ("gone", "here"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mod.py").write_text("X = 1\n")
        cache = definitions.Cache()
        cache.module("mod", tmp_path / folder / "mod.py", tmp_path / folder)
        cache.digest(tmp_path / folder / "mod.py")
        if folder == "here":
            shutil.rmtree(tmp_path / "gone")
        cache.save()
    assert in_use.exists() and not unused.exists()
    [file] = set((tmp_path / "cache").iterdir()) - {in_use}
    here = str(tmp_path / "here" / "mod.py")
    assert set(json.loads(file.read_text())) == {here, f"mod {here}"}


# What follows from a change

@pytest.fixture
def changed(make, measure, labs):
    """A study measured whole, whose code has changed since."""
    study, speed = make()
    study.fingerprint = Fingerprint("old", {"db": "1.0"})
    measure(study, speed)

    def again(now=Fingerprint("new", {"db": "1.0"})):
        study, speed = make()
        study.fingerprint = now
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
    assert study.conditions()["stale_because"] == ["code"]
    assert "4 of 4 points by earlier code" in study.judge("slower")._repr_html_()


def test_another_version_makes_a_record_stale_and_is_reported(changed, measure, monkeypatch):
    monkeypatch.setenv("LABBOOK_PROFILE", "full")
    study, speed = changed(Fingerprint("old", {"db": "1.1"}))
    assert measure(study, speed) == [] and speed.summary()["stale"].all()
    assert study.conditions()["stale_because"] == ["db 1.0 (now 1.1)"]
    assert "by other versions (db 1.0 (now 1.1))" in study.judge("slower")._repr_html_()
    study, speed = changed(Fingerprint("old", {"db": "1.0", "more": "2"}))
    assert not speed.summary()["stale"].any() and "stale_because" not in study.conditions()


def test_until_it_is_told_to_measure_again(changed, measure, monkeypatch):
    monkeypatch.setenv("LABBOOK_PROFILE", "full")
    monkeypatch.setenv("LABBOOK_REMEASURE", "1")
    study, speed = changed()
    assert len(measure(study, speed)) == 4
    study, speed = changed()
    assert measure(study, speed) == [], "what is of today is not measured twice"


def test_what_was_measured_with_other_restarts_is_measured_again(make, measure, labs):
    study, speed = make(setup={"system": ["a", "b"]}, vary={"clients": [1, 2]})
    measure(study, speed)
    study, speed = make(vary={"system": ["a", "b"], "clients": [1, 2]})
    assert list(speed.summary()["stale"]) == [True] * 4 and len(measure(study, speed)) == 4
    study, speed = make(vary={"clients": [1, 2], "system": ["a", "b"]})
    assert measure(study, speed) == []


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


def test_records_from_before_the_fingerprint_are_stale_and_readable(changed, measure):
    study, speed = changed()
    records = study.records("speed")
    meta = records.meta(speed.points()[0].key)
    meta["measure"] = meta.pop("vary")
    del meta["fingerprint"], meta["provenance"]["versions"]
    from labbook.study.records.record import summary_rows

    row, = summary_rows(meta, study.run.is_stale(meta))
    assert [row | {"stale": True}] == summary_rows(records.meta(meta["key"]), True)
    assert study.run.changed(meta) == ["code"]


@pytest.mark.parametrize("text", [
    "systems: [{name: db, host: server, settings: }]\n", "needs: 5\n", "needs: {packages: 5}\n", "since: 2026-01-02\n",
    "hosts: {x: .nan}\n"])
def test_a_lab_yml_that_is_being_written_has_a_fingerprint(library, root, text):
    """`labbook run` says what is wrong with it; `labbook claims` and `labbook book` ended with a TypeError."""
    (root / "data/papers/demo/lab.yml").write_text(f"sites: [lan]\n{text}")
    assert fingerprint("demo", library).code
