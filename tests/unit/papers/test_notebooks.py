"""Notebooks as they are committed: no results, plain parameters, prose without typed-in numbers."""

import ast
import re

import pytest

from labbook import paths
from labbook.pipeline.setup import requirements
from labbook.pipeline.sources import notebooks, parameters
from labbook.study.parameters.notebook import names_used

LONG_MINUTES = 8     # a quick profile that takes them with one repeat may stay at one
STUDIES = sorted(p.stem for p in (paths.checkout() / "notebooks").glob("*.ipynb"))


@pytest.fixture(params=STUDIES)
def study(request):
    return request.param


def cells(study, kind):
    return [c for c in notebooks.read(paths.notebook(study))["cells"] if c["cell_type"] == kind]


def sources(study, kind):
    return [notebooks.source(c) for c in cells(study, kind)]


def test_no_results_are_committed(study):
    ran = [c["id"] for c in cells(study, "code") if c["outputs"] or c["execution_count"] is not None]
    assert not ran, f"cells {ran} have results; type: nbstripout --keep-id {paths.notebook(study)}"


def test_nbstripout_would_leave_it_alone(study, tmp_path):
    import subprocess
    import sys

    copy = tmp_path / f"{study}.ipynb"
    copy.write_bytes(paths.notebook(study).read_bytes())
    done = subprocess.run([sys.executable, "-m", "nbstripout", "--keep-id", "--verify", copy],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_cells_have_ids_of_their_own(study):
    ids = [c["id"] for c in notebooks.read(paths.notebook(study))["cells"]]
    assert len(set(ids)) == len(ids), f"two cells have one id: {sorted(ids)}"


def test_parameters_are_plain_and_name_an_environment_that_is_there(study):
    declared = parameters.flat(parameters.declared(study))
    assert (paths.checkout() / declared["environment"]).is_file()
    # so that a spread is shown, where a second one fits into a quick profile; a verdict takes three
    minutes = requirements.description(study).needs["minutes"]["quick"]
    repeats = {name: value for name, value in declared.items() if name.rpartition(".")[2] == "repeats"}
    assert max(repeats.values()) >= (1 if minutes >= LONG_MINUTES else 2), (
        f"no experiment of {paths.notebook(study)} has two repeats in the quick profile: {repeats}")


def test_every_parameter_is_used_and_every_name_is_set(study):
    reads, missing = names_used(study)
    declared = parameters.declared(study)
    assert declared.keys() <= reads, f"no cell uses {declared.keys() - reads}"
    assert missing <= declared.keys(), f"no cell sets {missing - declared.keys()}"


def test_the_page_has_a_heading_and_a_place_in_the_book(study):
    assert notebooks.title(notebooks.read(paths.notebook(study))), "no cell of text begins with `# Title`"
    assert study in notebooks.in_book(), f"_toc.yml has no line `- file: notebooks/{study}`"


def test_every_number_in_the_prose_is_glued_somewhere(study):
    used = set(re.findall(r"\{glue:text\}`([^`]+)`", "\n".join(sources(study, "markdown"))))
    code = "\n".join(sources(study, "code"))
    names = [node.args[0] for node in ast.walk(ast.parse(code))
             if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "glue"]
    patterns = [pattern for name in names for pattern in (
        _names_in(study, "figures") if isinstance(name, ast.Name) else [_pattern(name)])]
    missing = [name for name in used if not any(re.fullmatch(p, name) for p in patterns)]
    assert not missing, f"no cell of {paths.notebook(study)} calls glue() with the names {missing}"


def test_what_the_prose_refers_to_is_a_cell(study):
    ids = {cell["id"] for cell in cells(study, "code")}
    named = re.findall(r"\]\(#([\w-]+)\)", "\n".join(sources(study, "markdown")))
    assert set(named) <= ids, f"no code cell has one of these ids: {set(named) - ids}"


def _names_in(study, module) -> list[str]:
    """What a loop over a paper's dict glues: its keys and keyword arguments, as patterns."""
    tree = ast.parse((paths.checkout() / "lib/labbook/papers" / study / f"{module}.py").read_text())
    keys = [node.slice for node in ast.walk(tree) if isinstance(node, ast.Subscript)]
    keys += [key for node in ast.walk(tree) if isinstance(node, ast.Dict) for key in node.keys]
    return [_pattern(key) for key in keys if isinstance(key, ast.JoinedStr) or (
        isinstance(key, ast.Constant) and isinstance(key.value, str))]


def _pattern(name) -> str:
    """A name, or an f-string of which every part in braces may be anything."""
    if isinstance(name, ast.JoinedStr):
        return "".join(".+" if isinstance(part, ast.FormattedValue) else re.escape(part.value)
                       for part in name.values)
    return re.escape(name.value)


def test_no_notebook_catches_errors_to_look_well(study):
    for text in sources(study, "code"):
        caught = [n.lineno for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Try)]
        assert not caught, f"`try` in {paths.notebook(study)}: a point that failed is recorded and shown"


def test_a_page_has_few_short_cells_and_shows_most_of_them(study):
    code = cells(study, "code")
    longest = {c["id"]: len(notebooks.source(c).splitlines()) for c in code
               if "parameters" not in notebooks.tags(c)}    # a table, folded on the page
    assert not {name: lines for name, lines in longest.items() if lines > 15}
    hidden = [c["id"] for c in code if {"remove-cell", "remove-input"} & set(notebooks.tags(c))]
    assert len(code) <= 45 and len(hidden) < len(code) / 4


def test_rows_of_a_dot_chart_that_are_quantities_have_their_unit(study):
    """A row is called by its value of the column `y`, so a number of milliseconds is text there."""
    calls = [node for text in sources(study, "code") for node in ast.walk(ast.parse(text))
             if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "dot_chart"]
    columns = {one.value.value for call in calls for one in call.keywords if one.arg == "y"}
    assert not [name for name in columns if re.search(r"_(ms|s|us|kb|mb|gb|bytes|mbit)$", name)]


def test_what_a_notebook_imports_from_the_library_is_there(study):
    from importlib import import_module

    for text in sources(study, "code"):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("labbook"):
                for alias in node.names:
                    try:
                        getattr(import_module(node.module), alias.name)
                    except AttributeError:
                        import_module(f"{node.module}.{alias.name}")
