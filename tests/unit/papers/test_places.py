"""A paper is three places under one name, and the rest of the library does without that name."""

import re

import pytest
from papers_in_book import PAPERS

from labbook import paths, systems

ROOT = paths.checkout()
# Files outside of the papers' own that name one, and what for.
MENTIONS = {
    "lib/labbook/cli.py": "examples in help texts",
    "lib/labbook/pipeline/sources/new.py": "an example in a message",
    "lib/labbook/systems/cloud/model.py": "the source of the VM types",
    "benchmarks/cluster_up.py": "measures with that study's hosts",
    "benchmarks/scratch_book.py": "runs all studies",
    "benchmarks/kills.py": "kills runs of all studies",
    "benchmarks/killing/phases.py": "says by what each study's phases are known",
    "benchmarks/killing/studies.py": "the smallest points of each study",
}


@pytest.mark.parametrize("paper", PAPERS)
def test_a_paper_is_three_places_under_one_name(paper):
    places = [f"data/papers/{paper}", f"notebooks/{paper}.ipynb", f"lib/labbook/papers/{paper}/__init__.py"]
    assert [place for place in places if not (ROOT / place).exists()] == []


def test_nothing_else_in_the_library_names_a_paper():
    names = [paper for paper in PAPERS if paper not in systems.names()]   # ceph_mds is a server, too
    pattern = re.compile(r"\b(?:" + "|".join(names) + r")\b|\bpapers[./](?:" + "|".join(PAPERS) + r")\b")
    sources = [path for folder in ("lib/labbook", "benchmarks") for path in (ROOT / folder).rglob("*")
               if path.suffix in (".py", ".yml", ".sh") and "papers" not in path.relative_to(ROOT).parts]
    naming = {str(path.relative_to(ROOT)) for path in sources if pattern.search(path.read_text())}
    assert naming == set(MENTIONS)
