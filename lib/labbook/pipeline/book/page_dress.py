"""What a study's page gets on its way into the book: its state at the top, code and sections about the
method folded, its data and command at the end. Pure: notebooks in, notebooks out."""

import copy
import re

from labbook.errors import in_words
from labbook.pipeline.book import glued, numbering
from labbook.pipeline.executing import pages
from labbook.pipeline.sources import notebooks

_OF_PAPERMILL = "papermill-error-cell-tag"
_PARAMETERS = {"parameters", "injected-parameters"}
_OWN_FOLDING = ("hide-", "remove-", "show-")
_VISIBLE_LINES = 15     # longer code is folded
_LINES_OF_A_CALL = 3    # code so short only calls for the output below it, and is left out
# Sections that a reader of the results can do without: how it was measured, and on what. fold.js folds what is marked.
_ABOUT_THE_METHOD = re.compile(r"^## (The experiments|(Its|The paper's) set-up and ours|Method|In two real sites|"
                               r"On clouds of your own|Conditions|Data|Data and command|Appendix: .*)$",
                               re.MULTILINE)
FOLDED = '```{raw} html\n<div class="lb-fold" hidden></div>\n```'
_HEADING = re.compile(r"^#\s+.+$", re.MULTILINE)
_FIRST_PARAGRAPH = re.compile(r"^#\s+.+\n+(?:[^\n#].*\n?)+", re.MULTILINE)
NOT_MEASURED = "*not measured*"


def dressed(notebook: dict, note: dict, ending: str = "", opening: str = "", answer: str = "") -> dict:
    """A notebook as the book shows it; `note`: of its last run (see pages.note), {} if it never ran;
    `opening`: a line below its heading; `answer`: below its first paragraph, which names the paper."""
    notebook = cleaned(notebook, note.get("state") == pages.OK)
    cells = notebook["cells"]
    made = glued.outputs(cells)

    def keep(name, itself):
        return itself if name in made else NOT_MEASURED

    for cell in cells:
        if cell["cell_type"] == "code":
            _fold(cell)
        elif cell["cell_type"] == "markdown":
            cell["source"] = _marked(glued.replaced(notebooks.source(cell), keep, keep))
    numbering.number(cells)
    _insert(cells, answer, after=_FIRST_PARAGRAPH)
    state = _state(note, any(cell.get("outputs") for cell in cells))
    _insert(cells, "\n\n".join(filter(None, (state, opening))), after=_HEADING)
    if ending:
        cells.append({"cell_type": "markdown", "metadata": {}, "source": _marked(ending), "id": "ending"})
    return notebook


def cleaned(notebook: dict, succeeded: bool) -> dict:
    """A copy without papermill's cells, times and paths, and without the messages of a run that succeeded."""
    notebook = copy.deepcopy(notebook)
    notebook["cells"] = [cell for cell in notebook["cells"] if _OF_PAPERMILL not in notebooks.tags(cell)]
    for cell in notebook["cells"]:
        cell["metadata"].pop("papermill", None)
        if succeeded and "outputs" in cell:
            cell["outputs"] = [one for one in cell["outputs"] if one.get("name") != "stderr"]
    for clutter in ("papermill", "widgets"):
        notebook["metadata"].pop(clutter, None)
    notebook["metadata"].setdefault(
        "kernelspec", {"name": "python3", "display_name": "Python 3", "language": "python"})
    return notebook


def _marked(source: str) -> str:
    """The text with a mark below each heading of a section that is folded."""
    return _ABOUT_THE_METHOD.sub(lambda found: f"{found[0]}\n\n{FOLDED}\n", source)


def _fold(cell):
    """Fold parameters and code that is long or has an output, and leave out code that only calls for one;
    leave a cell alone that has a tag of its own for this."""
    tags = notebooks.tags(cell)
    lines = notebooks.source(cell).strip().count("\n") + 1
    if _PARAMETERS & set(tags):
        cell["metadata"]["tags"] = ["hide-input"]
    elif any(tag.startswith(_OWN_FOLDING) for tag in tags):
        return
    elif cell.get("outputs") and lines <= _LINES_OF_A_CALL:
        cell["metadata"]["tags"] = [*tags, "remove-input"]
    elif cell.get("outputs") or lines > _VISIBLE_LINES:
        cell["metadata"]["tags"] = [*tags, "hide-input"]


def _insert(cells, text, after):
    """Insert a text behind what matches in the first cell of text where it does, or at the top."""
    if not text:
        return
    for cell in cells:
        if cell["cell_type"] == "markdown" and (found := after.search(notebooks.source(cell))):
            source = notebooks.source(cell)
            cell["source"] = f"{source[:found.end()]}\n\n{text}\n{source[found.end():]}"
            return
    cells.insert(0, {"cell_type": "markdown", "metadata": {}, "source": text, "id": "state"})


def _state(note: dict, has_outputs: bool) -> str:
    if not note:
        return "```{note}\nThis notebook has not been run here yet, so it shows no results.\n```"
    boxes = [_stopped(note)] if "stopped" in note else []
    boxes += [_failure(note, has_outputs)] if note.get("state") == pages.FAILED else []
    return "\n\n".join(boxes)


def _stopped(note: dict) -> str:
    counted = note["stopped"]["points"]
    went = f"{note['stopped']['state']} after {counted['done']} of {counted['total']} points"
    return (f"```{{warning}}\nThe last run was {went}"
            f"{'; this page shows the run before it' if note.get('state') else ''}.\n```")


def _failure(note: dict, has_outputs: bool) -> str:
    """A box with the error of a failed run, fenced so that its text cannot end the box. Only a run that left a page
    has that page's digest in its note."""
    error, which = note["error"], "The run before it" if "stopped" in note else "The last run of this notebook"
    below = "It left no outputs: those below are of an earlier run." if has_outputs else "It left no outputs."
    below = "The outputs up to the failure are below." if "page" in note else below
    message = error["message"].strip()
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", message)), default=0))
    return (f"{fence}``{{error}}\n{which} failed. {below}\n\n"
            f"{fence}text\n{in_words(error['name'], message)}\n{fence}\n{fence}``")
