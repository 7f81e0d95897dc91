"""Systems by name: registered ones, and those that a paper brings."""

import importlib
import inspect
import pkgutil
import subprocess
import sys

import pytest

from labbook import papers, systems
from labbook.errors import InputError
from labbook.systems.base import Described

OWN = """
from labbook.systems.base import Needs, System
from labbook.systems.cluster import Cluster

class Tape(System):
    NAME, NEEDS, protocol, port = {name!r}, Needs(("mt-st",)), "tape", 7000

class Tapes(Cluster):
    NAME, NEEDS, protocol = "tapes", Needs(("mt-st",)), "tape"
"""


@pytest.mark.parametrize("name", systems.names())
def test_every_entry_is_a_class_of_that_name(name):
    found = systems.find(name)
    assert issubclass(found, Described) and found.NAME == name
    assert found.needs().packages and found.NEEDS.packages


def test_every_class_that_says_what_it_needs_is_registered():
    modules = [importlib.import_module(found.name) for found in
               pkgutil.walk_packages(systems.__path__, "labbook.systems.")
               if ".on_host" not in found.name]
    classes = {kind for module in modules for _, kind in inspect.getmembers(module, inspect.isclass)
               if issubclass(kind, Described) and "NEEDS" in vars(kind)}
    assert classes == {systems.find(name) for name in systems.names()}


def test_names_import_no_system():
    code = ("import sys; from labbook import systems; assert systems.names(); "
            "print([m for m in sys.modules if m.startswith('labbook.systems.')])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


def test_a_name_that_is_not_known():
    with pytest.raises(InputError, match="no system 'casandra'.*did you mean 'cassandra'.*mysql"):
        systems.find("casandra")
    with pytest.raises(InputError, match="no system 'base'"):
        systems.find("base", study="no_such_study")


@pytest.fixture
def paper(tmp_path, monkeypatch):
    """Makes a paper with systems of its own."""
    monkeypatch.setattr(papers, "__path__", [*papers.__path__, str(tmp_path)])

    def make(study, text):
        (tmp_path / study).mkdir()
        (tmp_path / study / "__init__.py").touch()
        (tmp_path / study / "systems.py").write_text(text)
        importlib.invalidate_caches()

    yield make
    for name in [name for name in sys.modules if name.startswith("labbook.papers.of_test")]:
        del sys.modules[name]


def test_a_paper_brings_its_own_systems(paper):
    paper("of_test1", OWN.format(name="tape"))
    tape = systems.find("tape", study="of_test1")
    assert tape.NAME == "tape" and tape.needs().packages == ("mt-st",)
    assert systems.over_several(systems.find("tapes", study="of_test1"))
    assert systems.find("mysql", study="of_test1") is systems.find("mysql")
    with pytest.raises(InputError, match="no system 'tap'.*did you mean 'tape'"):
        systems.find("tap", study="of_test1")
    with pytest.raises(InputError, match="no system 'tape'"):
        systems.find("tape", study="cms_scalability")


def test_a_papers_system_with_a_registered_name_or_a_broken_import(paper):
    paper("of_test2", OWN.format(name="mysql"))
    with pytest.raises(InputError, match="of_test2.systems: NAME: 'mysql' is a system of labbook"):
        systems.find("mysql", study="of_test2")
    paper("of_test3", "import no_such_package")
    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
        systems.find("tape", study="of_test3")
