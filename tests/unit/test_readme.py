"""What the README tells people to type and to look at is there."""

import re
from pathlib import Path

import pytest

from labbook.cli import parser

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
TARGETS = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.M))


def commands():
    """Each `labbook ...` in code."""
    return sorted(set(re.findall(r"`labbook ([^`]+)`", README)))


@pytest.mark.parametrize("line", commands())
def test_commands_are_the_command_lines_own(line):
    words = re.sub(r'"[^"]*"', lambda quoted: quoted[0][1:-1].replace(" ", ""), line).split()
    names = next(a for a in parser()._actions if a.dest == "command").choices
    assert words[0] in names
    placeholders = {"STUDY": "cms_scalability", "HOST": "server"}
    if len(words) > 1:      # alone, a command may be named without its arguments
        parser().parse_args([placeholders.get(word, word) for word in words])


def test_make_targets_are_the_makefiles_own():
    asked = set(re.findall(r"\bmake ([a-z]+)", " ".join(re.findall(r"`[^`]+`|```.*?```", README, re.S))))
    assert {"book", "test", "published"} <= asked <= TARGETS


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(([^)#]+)\)", README))))
def test_links_lead_somewhere(target):
    assert target.startswith("https://") or (ROOT / target).exists()


def test_the_parts_it_names_are_there():
    layout = README.split("```")[3]
    folder = ""
    for line in filter(str.strip, layout.splitlines()):
        name = line.split()[0]
        if not line.startswith("    "):
            folder = name if name == "lib/labbook/" else ""
        assert (ROOT / folder.removesuffix(name) / name).exists() or (ROOT / folder / name).exists(), name
