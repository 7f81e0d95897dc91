"""A name that a module reads is defined somewhere in it: what no test runs fails at the user's."""

import ast
import builtins

import pytest

from labbook import paths

KNOWN = {*dir(builtins), "__file__", "__name__", "__doc__"}
FILES = sorted((paths.checkout() / "lib/labbook").rglob("*.py"))


def defined(tree: ast.Module) -> set[str]:
    """All names that a module or any function of it gives a value."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {(one.asname or one.name).partition(".")[0] for one in node.names}
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler, ast.MatchAs)):
            found.add(node.name)
    return found


def unknown(source: str) -> set[str]:
    tree = ast.parse(source)
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - defined(tree) - KNOWN


def test_names_are_defined():
    assert len(FILES) > 400
    assert not {str(file): names for file in FILES if (names := unknown(file.read_text()))}


@pytest.mark.parametrize("source, names", [
    ("def wait():\n    return LIMIT", {"LIMIT"}), ("LIMIT = 5\ndef wait(s, *a):\n    return LIMIT, s, a, len", set()),
    ("import a.b as c\nfrom d import e\ntry:\n    a\nexcept OSError as f:\n    f, c, e", {"a"})])
def test_a_name_without_a_value_is_found(source, names):
    assert unknown(source) == names
