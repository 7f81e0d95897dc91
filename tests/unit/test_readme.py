"""What the README and the pages in docs/ tell people to type and to look at is there."""

import importlib.util
import re
import subprocess
from pathlib import Path

import pytest

from labbook import paths
from labbook.claims import claims
from labbook.cli import parser
from labbook.lab.description import LabDescription
from labbook.lab.quantities import size_text
from labbook.pipeline.setup.requirements import all_studies

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
ARCHITECTURE = (ROOT / "docs/architecture.md").read_text()
PAGES = {ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")}
LINKS = sorted((page, target) for page in PAGES for target in set(re.findall(r"\]\(([^)#]+)\)", page.read_text())))
TARGETS = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.M))


def commands():
    """Each `labbook ...` in code."""
    return sorted(set(re.findall(r"`labbook ([a-z][^`]*)`", README)))


@pytest.mark.parametrize("line", commands())
def test_commands_are_the_command_lines_own(line):
    words = re.sub(r""""[^"]*"|'[^']*'""", lambda quoted: quoted[0][1:-1].replace(" ", ""), line).split()
    names = next(a for a in parser()._actions if a.dest == "command").choices
    assert words[0] in names
    placeholders = {"STUDY": "cms_scalability", "HOST": "server"}
    if len(words) > 1:      # alone, a command may be named without its arguments
        parser().parse_args([placeholders.get(word, word) for word in words])


def test_make_targets_are_the_makefiles_own():
    mentioned = set(re.findall(r"\bmake ([a-z]+)", " ".join(re.findall(r"`[^`]+`|```.*?```", README, re.S))))
    assert {"book", "test", "published"} <= mentioned <= TARGETS


def test_what_make_clean_takes_away_has_no_records_and_no_downloads(monkeypatch):
    for name in ("LABBOOK_ROOT", "LABBOOK_RECORDS", "LABBOOK_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(ROOT)
    output = subprocess.run(["make", "-n", "clean"], capture_output=True, text=True, check=True).stdout
    assert output == "rm -rf .venv build\n"
    for folder in (paths.records_dir(), paths.cache_dir(), paths.published_dir()):
        assert not any(folder.is_relative_to(ROOT / gone) for gone in (".venv", "build")), folder


@pytest.mark.parametrize("page, target", LINKS, ids=[f"{page.name}-{target}" for page, target in LINKS])
def test_links_lead_somewhere(page, target):
    assert target.startswith("https://") or (page.parent / target).exists()


def test_so_many_claims_were_changed_after_data():
    all_of_them = [claim for study in all_studies() for claim in claims.load(study)]
    of_papers = [claim for claim in all_of_them if claim["owner"] == "paper"]
    changed = [claim for claim in of_papers if _was_changed(claim)]
    headline = [_was_changed(claim) for claim in all_of_them if claim["headline"]]
    for page in (README, (ROOT / "book/index.md").read_text(), (ROOT / "book/how.md").read_text()):
        assert "More than two thirds of those for the papers' statements were changed after data had been seen" in page
    assert 2 / 3 < len(changed) / len(of_papers) < 3 / 4 and sum(headline) > 0.8 * len(headline)


def _was_changed(claim) -> bool:
    """After data had been seen."""
    return bool(claim.get("changed")) and not claim["changed"].startswith("before any data")


def test_it_is_short():
    assert len(README.splitlines()) < 90


def test_pictures_are_those_that_can_be_taken_anew():
    spec = importlib.util.spec_from_file_location("pictures", ROOT / "docs/pictures.py")
    pictures = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pictures)
    assert {file.name for file in (ROOT / "docs").glob("*.png")} == set(pictures.PICTURES)
    assert set(re.findall(r"!\[[^]]+\]\(docs/([^)]+)\)", README)) <= set(pictures.PICTURES)


@pytest.mark.parametrize("study", re.findall(r"^\| `(\w+)` \|", README, re.M))     # one of your own has no row
def test_times_and_sizes_are_those_of_lab_yml(study):
    lab = LabDescription.load(ROOT / "data/papers" / study / "lab.yml")
    row, = re.findall(rf"^\| `{study}` \|(.*)\|$", README, re.M)
    quick, full, memory, disk = (cell.strip() for cell in row.split("|"))
    minutes, sizes = lab.needs["minutes"], [lab.disk_bytes(profile) for profile in ("quick", "full")]
    assert (quick, full) == (f"{minutes['quick']} min", f"{minutes['full'] / 60:.0f} h")
    assert memory == size_text(lab.needs["memory"])
    assert disk == size_text(sizes[0]) + (f", full {size_text(sizes[1])}" if sizes[0] != sizes[1] else "")


def test_the_parts_it_names_are_there():
    layout = ARCHITECTURE.split("```")[1]
    folder = ""
    for line in filter(str.strip, layout.splitlines()):
        name = line.split()[0]
        if not line.startswith("    "):
            folder = name if name == "lib/labbook/" else ""
        assert (ROOT / folder.removesuffix(name) / name).exists() or (ROOT / folder / name).exists(), name
