"""What the prose has readers type and write is what the program takes."""

import re

import yaml

from labbook import paths
from labbook.checks import check
from labbook.claims import claims
from labbook.lab.description import LabDescription


def blocks(page: str, language: str) -> list[str]:
    """The page's blocks of a language, plain or with a caption."""
    text = (paths.checkout() / "book" / page).read_text(encoding="utf-8")
    return re.findall(rf"^```(?:{language}|\{{code-block\}} {language}\n:caption: [^\n]+)\n(.*?)^```", text,
                      re.MULTILINE | re.DOTALL)


def test_the_example_of_claims_and_lab_would_be_accepted():
    example, _, lab, *_ = map(yaml.safe_load, blocks("add_a_paper.md", "yaml"))
    check(example, claims.SCHEMA, "the book's example")
    assert [h.name for h in LabDescription.parse(lab).hosts] == ["server", "client"]


def test_the_table_of_rules_has_all_of_them():
    text = (paths.checkout() / "book" / "add_a_paper.md").read_text()
    assert set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) == set(claims.RULES)


def test_examples_of_code_are_python():
    found = [b for page in ("add_a_paper.md", "how.md") for b in blocks(page, "python")]
    assert len(found) >= 4
    for text in found:
        compile(text, "example", "exec")


def test_commands_in_the_prose_are_commands():
    from labbook.cli import parser

    commands = {line for page in (paths.checkout() / "book").glob("*.md")
                for line in re.findall(r"(?:^|`|bin/)labbook ([a-z]+)", page.read_text(), re.MULTILINE)}
    known = next(a.choices for a in parser()._actions if a.choices and "run" in a.choices)
    assert commands & set(known) >= {"run", "book", "doctor", "up", "ssh", "down"}
    assert commands <= set(known), commands - set(known)
