"""A study's notebook as a file: its cells, and what its parameters cell declares."""

import ast
import builtins
import json
from pathlib import Path

from labbook import paths
from labbook.errors import InputError


def read(path: Path) -> dict:
    """A notebook's JSON; InputError when it is missing or not a notebook of format 4."""
    try:
        notebook = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError("no such notebook", file=path) from None
    except ValueError as error:
        raise InputError(f"not a notebook: {error}", file=path) from None
    if not isinstance(notebook, dict) or notebook.get("nbformat") != 4:
        raise InputError("not a notebook of format 4", file=path)
    return notebook


def source(cell: dict) -> str:
    """The source of a cell, which is stored as one string or as a list of lines."""
    text = cell.get("source", "")
    return text if isinstance(text, str) else "".join(text)


def tags(cell: dict) -> list[str]:
    return cell.get("metadata", {}).get("tags", [])


def declared(study: str) -> dict:
    """{name: default} of the cell tagged `parameters`: the quick profile. A group is a dict.

    InputError unless the notebook has exactly one such cell, which sets names to literals.
    """
    path = paths.notebook(study)
    cells = [c for c in read(path)["cells"] if "parameters" in tags(c)]
    if not cells:
        raise InputError("no cell is tagged 'parameters', so nothing could be set in it", file=path,
                         allowed="one code cell with this tag, which may be empty")
    if len(cells) > 1:
        raise InputError("more than one cell is tagged 'parameters'", file=path)
    return literals(source(cells[0]), path)


def literals(code: str, file) -> dict:
    """{name: value} of assignments of literals and of `dict(name=literal, ...)`; InputError for
    any other statement."""
    try:
        statements = ast.parse(code).body
    except SyntaxError as error:
        raise InputError(f"the parameters cell is not Python: {error.msg}", file=file,
                         key=f"line {error.lineno}") from None
    values = {}
    for statement in statements:
        name = _target(statement)
        try:
            value = ast.literal_eval(_DictCalls().visit(statement.value))
        except (AttributeError, ValueError, TypeError):
            raise InputError("the parameters cell may only set names to literals and to dict(...) "
                             "of literals", file=file,
                             key=name or f"line {statement.lineno}") from None
        if name is None:
            raise InputError("one name a line in the parameters cell", file=file,
                             key=f"line {statement.lineno}")
        values[name] = value
    return values


def _target(statement) -> str | None:
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
    else:
        target = getattr(statement, "target", None)
    return target.id if isinstance(target, ast.Name) else None


class _DictCalls(ast.NodeTransformer):
    """dict(name=value, ...) as the literal {"name": value, ...}."""

    def visit_Call(self, node):
        self.generic_visit(node)
        names = [keyword.arg for keyword in node.keywords]
        if getattr(node.func, "id", None) != "dict" or node.args or None in names:
            return node
        return ast.Dict([ast.Constant(name) for name in names], [k.value for k in node.keywords])


def names_used(study: str) -> tuple[set[str], set[str]]:
    """Names that the cells beside the parameters cell read, and those of them that no cell sets: parameters, or
    slips. A cell that is no Python is left out."""
    reads, sets = set(), set(dir(builtins))
    for cell in code(study):
        for node in ast.walk(parsed(cell)):
            _note(node, reads, sets)
    return reads, reads - sets


def code(study: str) -> list[str]:
    """The sources of the code cells beside the parameters cell."""
    return [source(cell) for cell in read(paths.notebook(study))["cells"]
            if cell["cell_type"] == "code" and "parameters" not in tags(cell)]


def parsed(cell: str) -> ast.Module:
    """As python() of a cell, parsed."""
    return ast.parse(python(cell))


def python(cell: str) -> str:
    """A cell without its magics; empty where it is no Python, which running it reports."""
    text = "\n".join("" if line.lstrip().startswith(("%", "!")) else line for line in cell.splitlines())
    try:
        ast.parse(text)
    except SyntaxError:
        return ""
    return text


def _note(node, reads: set, sets: set) -> None:
    if isinstance(node, ast.Name):
        (reads if isinstance(node.ctx, ast.Load) else sets).add(node.id)
    elif isinstance(node, ast.alias):
        sets.add((node.asname or node.name).partition(".")[0])
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler)):
        sets.add(node.name)
    elif isinstance(node, ast.arg):
        sets.add(node.arg)
