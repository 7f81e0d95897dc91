"""pyproject.toml, the files of pins and environment.yml say the same, and what is imported is asked for."""

import ast
import json
import re
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
ASKED = {canonicalize_name(r.name): r for r in map(Requirement, [
    *PROJECT["dependencies"], *PROJECT["optional-dependencies"]["test"]])}
PIN_FILES = ["constraints.txt", "constraints-test.txt", "lib/bootstrap.txt"]
PINS = dict(re.match("([^=]*)==([^ ]*)", line).groups() for file in PIN_FILES
            for line in (ROOT / file).read_text().splitlines() if not line.startswith(("#", " ")))
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text())
# Asked for and not imported: programs that labbook runs, and what those read.
PROGRAMS = {"import-linter", "jupyter-book", "jupyterlab", "sphinx-book-theme", "ipykernel", "nbstripout", "pytest-timeout",
            "pytest-xdist", "flask", "flask-cors", "moto"}
# What runs by a host's own Python, with the packages that its system's NEEDS name.
ON_HOSTS = {"ceph_tools", "openstack_plugin"}
IMPORT_NAMES = {"yaml": "pyyaml", "zmq": "pyzmq", "openstack": "openstacksdk", "IPython": "ipython", "cassandra": "cassandra-driver",
                # the second one is the first one's own half
                "keystoneclient": "python-keystoneclient", "keystoneauth1": "python-keystoneclient"}


def test_pins_are_names_and_versions_only():
    for name, version in PINS.items():
        assert re.fullmatch(r"[a-z0-9.-]+", name) and re.fullmatch(r"[0-9][0-9a-z.]*", version), name


@pytest.mark.parametrize("name", sorted(ASKED))
def test_what_is_asked_for_is_pinned_to_a_version_that_will_do(name):
    assert name in PINS
    assert PINS[name] in ASKED[name].specifier


def test_jupyterlab_is_pinned_for_people_as_for_tests():
    lab, tests = (dict(re.findall(r"^([^=\n #]*)==([^ ]*)", (ROOT / f"constraints-{one}.txt").read_text(), re.M))
                  for one in ("lab", "test"))
    assert lab and lab.items() <= tests.items()
    assert {Requirement(text).name for text in PROJECT["optional-dependencies"]["lab"]} <= set(lab)


def test_conda_takes_the_same_pins_and_the_project_itself():
    pip = next(part["pip"] for part in CONDA["dependencies"] if isinstance(part, dict))
    assert pip == ["--require-hashes", "--only-binary=:all:", *(f"-r {file}" for file in PIN_FILES)]


def test_what_builds_labbook_is_pinned_too():
    """It is installed without build isolation, which would fetch it without a hash."""
    pins = (ROOT / "lib/bootstrap.txt").read_text()
    for need in map(Requirement, tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]):
        assert f"{need.name}=={PINS[need.name]} " in pins and PINS[need.name] in need.specifier


def test_conda_takes_the_same_python():
    python = next(Requirement(part) for part in CONDA["dependencies"]
                  if isinstance(part, str) and part.startswith("python"))
    wanted = SpecifierSet(PROJECT["requires-python"])
    for minor in range(8, 20):
        version = f"3.{minor}.1"
        assert version not in python.specifier or version in wanted
    assert all(f"3.{minor}.1" in python.specifier for minor in (11, 12, 13))


def test_pins_cover_all_that_the_environment_takes_in():
    from importlib.metadata import PackageNotFoundError, distribution

    wanted, seen = [(name, ()) for name in ASKED], set()
    while wanted:
        name, extras = wanted.pop()
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        try:
            needs = distribution(name).requires or []
        except PackageNotFoundError:
            continue    # not for this Python
        assert name in PINS or name in ("pip", "setuptools"), f"{name} has no pin"
        for need in map(Requirement, needs):
            environments = [{"extra": extra} for extra in extras or ("",)]
            if need.marker is None or any(need.marker.evaluate(e) for e in environments):
                wanted.append((canonicalize_name(need.name), tuple(sorted(need.extras))))


def sources(folder):
    yield from (file.read_text() for file in folder.rglob("*.py") if file.parent.name not in ON_HOSTS)
    for notebook in folder.glob("*.ipynb"):
        cells = json.loads(notebook.read_text())["cells"]
        yield "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")


@pytest.mark.parametrize("python", ["3.11.0", "3.12.0", "3.13.0"])
def test_pins_will_do_for_every_python_that_is_promised(python):
    """Debian 12 has 3.11.2: a package may ask for a later 3.11."""
    from importlib.metadata import PackageNotFoundError, distribution

    refused = []
    for name, version in PINS.items():
        try:
            found = distribution(name)
        except PackageNotFoundError:
            continue
        asks = found.metadata["Requires-Python"]
        if found.version == version and asks and python not in SpecifierSet(asks):
            refused.append(f"{name} {version} asks for Python {asks}")
    assert not refused


def imported(folder):
    names = set()
    for source in sources(ROOT / folder):
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names.add(node.module)
    tops = {name.partition(".")[0] for name in names} - sys.stdlib_module_names - {"labbook"}
    return {canonicalize_name(IMPORT_NAMES.get(top, top)) for top in tops}


def test_what_the_library_imports_is_asked_for():
    library = {canonicalize_name(Requirement(text).name) for text in [
        *PROJECT["dependencies"], *PROJECT["optional-dependencies"]["lab"]]}    # these if they are there
    assert imported("lib/labbook") | imported("notebooks") <= library


def test_what_is_asked_for_is_used():
    assert set(ASKED) <= set().union(*map(imported, ("lib/labbook", "notebooks", "tests"))) | PROGRAMS
