"""The tutorial *Add a paper*, typed word for word in a clean clone: its files, cells and commands."""

import json
import re
from pathlib import Path

import pytest
from checkout_copy import CHECKOUT
from typed_pages import clone, type_in  # noqa: F401 (fixtures)

NAME = "durable_redis"
PAGE = (CHECKOUT / "book" / "add_a_paper.md").read_text()
TUTORIAL = PAGE[:PAGE.index("\n(rules)=\n")]
BLOCK = re.compile(r"^```(?:bash|\{code-block\} \w+\n:caption: (?P<place>[^\n]+))\n(?P<text>.*?)^```$", re.M | re.S)
PAPERS = (f"data/papers/{NAME}/", f"lib/labbook/papers/{NAME}/", f"notebooks/{NAME}.ipynb",
          f"tests/unit/papers/{NAME}/")


def write(clone: Path, place: str, text: str) -> None:
    """A file of the page, or the source of a cell of its notebook."""
    file, _, cell = place.partition(", cell ")
    path = clone / file
    if not cell:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return
    notebook = json.loads(path.read_text())
    found, = [one for one in notebook["cells"] if one["id"] == cell]
    found["source"] = text.rstrip("\n").splitlines(keepends=True)
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


ROW = re.compile(r"[ *+]+(?P<verdict>replicated|not replicated|open|not testable here|not run|not judged yet)\b"
                 r".*?  (?P<id>[a-z0-9]+(-[a-z0-9]+)+)(  |$)")


def verdicts_in(text: str) -> dict[str, str]:
    """The verdict of each claim that `labbook claims` printed."""
    return {found["id"]: found["verdict"] for found in map(ROW.match, text.splitlines()) if found}


@pytest.mark.timeout(1200)
def test_the_tutorial_leads_to_verdicts_and_adds_new_files_only(clone, type_in):
    printed, written = {}, set()
    for block in BLOCK.finditer(TUTORIAL):
        if block["place"]:
            write(clone, block["place"], block["text"])
            written.add(block["place"])
            continue
        for command in block["text"].splitlines():
            printed.setdefault(command, []).append(type_in(command))
    assert len(written) > 10

    first, last = map(verdicts_in, printed[f"labbook claims {NAME}"])
    assert set(first) == {"clients-wait"}       # what `labbook new` wrote
    assert set(last) == {"always-writes-slower", "always-reads-alike"}
    judged = {"replicated", "not replicated", "open"}     # which one, other tests beside this one decide
    assert {*first.values(), *last.values()} <= judged
    assert "20 points" not in printed[f"labbook run {NAME} --dry-run"][0]

    changed = type_in("git status --porcelain --untracked-files=all").splitlines()
    assert " M _toc.yml" in changed
    others = [line for line in changed if line != " M _toc.yml"]
    assert others and all(line.startswith("?? ") and line[3:].startswith(PAPERS) for line in others), others
    type_in(f"python -m pytest -q tests/unit/papers/*.py tests/unit/papers/{NAME} tests/unit/test_floors.py "
            f"tests/unit/study/records/test_fingerprint.py -k '{NAME} or contracts or all_that_measures'")
    page = (clone / "build/html/notebooks" / f"{NAME}.html").read_text()
    assert "What a flush costs".lower() in page.lower()
