"""`labbook new`: what it writes is whole and is taken by all that reads it; what cannot be is refused."""

import ast
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import yaml

from labbook import cli, paths
from labbook.checks import check
from labbook.claims import claims
from labbook.errors import InputError, LabError
from labbook.lab.description import LabDescription
from labbook.pipeline.setup import requirements
from labbook.pipeline.sources import new, notebooks, parameters

TOC = """format: jb-book
root: book/index
parts:
  - caption: Papers      # a comment
    chapters:
      - file: notebooks/cms
  - caption: About the book
    chapters:
      - file: book/how
"""


@pytest.fixture
def checkout(book):
    book.study("cms", "1")
    book.write("_toc.yml", TOC)
    return book


def test_what_it_writes_is_whole(checkout, capsys):
    assert cli.main(["new", "slow_disks", "--system", "mariadb"]) == 0
    printed = capsys.readouterr().out.split()
    assert sorted(printed) == sorted([*(p.format(name="slow_disks") for p in new.PLACES.values()), "_toc.yml"])
    assert notebooks.selected([]) == ["cms", "slow_disks"] and all(notebooks.parts("slow_disks").values())
    lab = LabDescription.load(paths.papers("slow_disks") / "lab.yml")
    assert [host.name for host in lab.hosts] == ["server", "client"]
    assert "mariadb-server" in " ".join(requirements.requirements(["slow_disks"]).packages)
    check(yaml.safe_load(claims.path("slow_disks").read_text()), claims.SCHEMA, "claims.yml")
    quick = parameters.declared("slow_disks")
    assert parameters.chosen("slow_disks", "full")["response"].keys() == quick["response"].keys()
    cells = notebooks.read(paths.notebook("slow_disks"))["cells"]
    for text in [notebooks.source(c) for c in cells if c["cell_type"] == "code"] + [
            (checkout.root / place).read_text() for place in printed if place.endswith(".py")]:
        imports = [node for node in ast.parse(text).body if isinstance(node, (ast.Import, ast.ImportFrom))
                   and "slow_disks" not in ast.unparse(node)]
        exec("\n".join(map(ast.unparse, imports)), {})
    assert "${" not in "".join((checkout.root / place).read_text() for place in printed)


def test_the_chapter_comes_after_the_other_papers_and_nothing_else_changes(checkout):
    new.new("slow_disks")
    assert (checkout.root / "_toc.yml").read_text() == TOC.replace(
        "cms\n", "cms\n      - file: notebooks/slow_disks\n")


@pytest.mark.parametrize("name, system, message", [
    ("cms", "null", "study 'cms' exists: data/papers/cms, notebooks/cms.ipynb"),
    ("Slow", "null", "cannot be a study's name"),
    ("slow-disks", "null", "cannot be a study's name"),
    ("../slow", "null", "cannot be a study's name"),
    ("lambda", "null", "cannot be a study's name"),
    ("a" * 41, "null", "cannot be a study's name"),
    ("slow", "mariabd", "did you mean 'mariadb'"),
    ("slow", "haproxy", "clients cannot call 'haproxy' alone .allowed: .*mariadb.*null"),
    ("slow", "galera", "cannot call 'galera'"),
    ("half", "null", "study 'half' exists: lib/labbook/papers/half"),
    ("tested", "null", "test_experiments.py: exists already"),
])
def test_what_cannot_be_is_refused_and_nothing_is_written(checkout, name, system, message):
    checkout.write("lib/labbook/papers/half/__init__.py", "")
    checkout.write("tests/unit/papers/tested/test_experiments.py", "")
    before = sorted(checkout.root.rglob("*"))
    with pytest.raises(InputError, match=message):
        new.new(name, system)
    assert sorted(checkout.root.rglob("*")) == before
    assert (checkout.root / "_toc.yml").read_text() == TOC


def test_a_book_without_papers_has_no_place_for_one(checkout):
    checkout.write("_toc.yml", "format: jb-book\nroot: book/index\n")
    with pytest.raises(InputError, match="_toc.yml: no chapter is a notebook"):
        new.new("slow")


@pytest.mark.parametrize("fails_at", ["slow.ipynb", "_toc.yml"])
@pytest.mark.parametrize("error", [LabError("the disk is full"), KeyboardInterrupt()])
def test_after_an_error_nothing_of_it_is_there_and_it_can_be_tried_again(checkout, monkeypatch, fails_at, error):
    """The half that was written had been refused as a study that exists."""
    before = {path for path in checkout.root.rglob("*") if path.is_file()}
    whole = new.write_whole

    def fail(path, write):
        if path.name == fails_at:
            raise error
        whole(path, write)

    with monkeypatch.context() as patched:
        patched.setattr(new, "write_whole", fail)
        with pytest.raises(type(error)):
            new.new("slow")
    left = {path for path in checkout.root.rglob("*") if path.is_file()} - before
    assert {path.name for path in left} <= {".new.lock"} and (checkout.root / "_toc.yml").read_text() == TOC
    assert new.new("slow") and notebooks.selected([]) == ["cms", "slow"]


def test_two_at_once_both_get_their_chapter(checkout, monkeypatch):
    """Each had written the table of contents that it had read before."""
    together, texts = threading.Barrier(2, timeout=10), new.texts

    def read(name, system):
        if name not in asked:
            asked.add(name)
            together.wait()
        return texts(name, system)

    asked = set()
    monkeypatch.setattr(new, "texts", read)
    with ThreadPoolExecutor() as pool:
        list(pool.map(new.new, ("slow", "fast")))
    assert sorted(notebooks.selected([])) == ["cms", "fast", "slow"]
