"""A notebook by labbook and by papermill alone: what a page costs besides its cells.

    .venv/bin/python benchmarks/notebook.py [--rounds 6] [--short] [--json FILE]

The CMS study's notebook, of the same length and with cells that do nothing, in a scratch checkout. In turns: `labbook
run`, which takes the page for one that never ran, and the `papermill` program, each the whole process. Root or sudo;
no lab is brought up.
"""

import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import scratch_book
import shared
from rounds import Rounds

PAPERMILL = Path(sys.executable).with_name("papermill")


def main():
    args = shared.parser(__doc__, rounds=6).parse_args()
    if args.short:
        args.rounds = 1
    file, rounds = shared.log("notebook"), Rounds("notebook", args, {"papermill": version("papermill")})
    with tempfile.TemporaryDirectory() as folder:
        with scratch_book.made(Path(folder), ["study1"]) as book:
            notebook = book.folder / "notebooks/study1.ipynb"
            alone = (PAPERMILL, "--no-progress-bar", "-k", "python3", notebook, book.folder / "alone.ipynb")

            def ours():
                book.forget_pages()
                return shared.timed((scratch_book.LABBOOK, "run"), file)

            rounds.in_turns("papermill", [ours, lambda: shared.timed(alone, file, cwd=book.folder)])


if __name__ == "__main__":
    shared.run(main)
