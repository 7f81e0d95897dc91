"""Completion in a shell: what it asks, and what it gets."""

import os
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest

from labbook.commands import completion

CODE = "import sys; from labbook import cli; cli.main(sys.argv[1:])"


def completed(line, tmp_path) -> list[str]:
    """The words that a shell is given for a line, with the cursor at its end."""
    answer = tmp_path / "words"
    environment = os.environ | {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_STDOUT_FILENAME": str(answer), "COMP_LINE": line,
                                "COMP_POINT": str(len(line)), "_ARGCOMPLETE_IFS": "\n"}
    subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True, check=True, timeout=60)
    return sorted(word.strip() for word in answer.read_text().split("\n") if word.strip())


@pytest.fixture
def studies(book):
    for name in ("cms", "cloud"):
        book.study(name, "1")
    book.write("../records/here/cms/clients/1.parquet", "")
    return book


@pytest.mark.parametrize("line, expected", [
    ("labbook cl", ["claims"]),
    ("labbook run c", ["cloud", "cms"]),
    ("labbook run --prof", ["--profile"]),
    ("labbook run --profile f", ["full"]),
    ("labbook publish cm", ["cms"]),
    ("labbook rows cms ", ["clients"]),
    ("labbook doctor --environment env", ["environments/local.yml"]),
    ("labbook claims --owner ", ["ours", "paper"]),
    ("labbook run cms -p cl", ["clients"]),
    ("labbook run cms -p clients ", [r"\[1,10\]"]),
    ("labbook run cms -p clients 3 -p cl", ["clients"]),
    ("labbook run cms --parameter cl", ["clients"]),
])
def test_words_that_may_come_next(studies, tmp_path, line, expected):
    assert completed(line, tmp_path) == expected


def test_outside_of_a_checkout_there_are_commands_but_no_studies(monkeypatch):
    from labbook.errors import InputError

    def no_checkout(_):
        raise InputError("no checkout")
    assert completion._quiet(no_checkout)(None) == []


def test_labs_and_hosts_are_those_that_are_up(monkeypatch):
    up = [SimpleNamespace(id="ab12", study="cms", hosts=["db", "client"])]
    monkeypatch.setattr(completion, "_standing", lambda: up)
    assert sorted(completion._labs(None)) == ["ab12", "cms"] and completion._hosts(None) == ["db", "client"]
    monkeypatch.undo()
    monkeypatch.setattr(completion, "labs_left", lambda: False)
    assert list(completion._standing()) == []


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_what_switches_it_on_is_the_shells_own_language(shell, capsys, tmp_path):
    assert completion.show(SimpleNamespace(shell=shell)) == 0
    script = tmp_path / "script"
    script.write_text(capsys.readouterr().out)
    if shutil.which(shell):
        subprocess.run([shell, "-n", script], check=True, timeout=20)
    assert "labbook" in script.read_text()
