"""Colour, on a terminal alone."""

import io

import pytest

from labbook import colour


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def shell(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")


def test_a_terminal_gets_colour_and_a_pipe_none():
    assert colour.paint("x", colour.RED, Terminal()) == "\033[31mx\033[0m"
    assert colour.paint("x", colour.RED, io.StringIO()) == "x"


@pytest.mark.parametrize("name, value, wanted", [
    ("NO_COLOR", "1", False), ("NO_COLOR", "", True), ("TERM", "dumb", False)])
def test_who_wants_none_gets_none(monkeypatch, name, value, wanted):
    monkeypatch.setenv(name, value)
    assert colour.is_wanted(Terminal()) is wanted


def test_verdicts_have_their_colours_and_names_have_none():
    coloured = colour.words("not replicated  replicated  open-files  was-replicated", Terminal())
    assert coloured == "\033[31mnot replicated\033[0m  \033[32mreplicated\033[0m  open-files  was-replicated"
    assert colour.words("not replicated", io.StringIO()) == "not replicated"
