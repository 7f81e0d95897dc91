"""Nothing to do, and going on after a kill: `labbook run`, DVC and Snakemake, five notebooks each.

    .venv/bin/python benchmarks/noop_run.py [--studies 5] [--rounds 6] [--short] [--json FILE]

In a scratch checkout: five copies of the CMS study's data, each with a notebook of the same length that measures
nothing, run once. DVC and Snakemake have a step for each of these notebooks, which runs it by papermill. In turns,
the whole process each: a run of what is up to date; and what a run takes to the end that was killed (SIGKILL) in
its third notebook. DVC and Snakemake have packages of their own (`labbook install --benchmarks`); --short leaves
them out. Root or sudo; no lab is brought up.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import scratch_book
import shared
from rounds import Rounds, timed

from labbook.errors import LabError
from labbook.pipeline.setup import peers

PAPERMILL = f"env -u PYTHONPATH -u PYTHONNOUSERSITE {Path(sys.executable).with_name('papermill')}"
KILLED_IN = 3
BEGIN_SECONDS = 120
# Of the notebook in which a run is killed: it takes long where the file SLOW is.
WAITS = """import os, pathlib, time
folder = pathlib.Path(os.environ["SCRATCH_BOOK"])
if (folder / "slow").exists():
    (folder / "begun").touch()
    time.sleep(600)"""


def main():
    args = _arguments()
    shared.check(artifacts=() if args.short else (peers.DVC, peers.SNAKEMAKE))
    names = [f"study{number}" for number in range(1, 1 + args.studies)]
    file = shared.log("noop_run")
    rounds = Rounds("noop_run", args, {"dvc": peers.DVC.version, "snakemake": peers.SNAKEMAKE.version},
                    studies=args.studies)
    with tempfile.TemporaryDirectory() as folder, scratch_book.made(Path(folder), names) as book:
        os.environ["SCRATCH_BOOK"] = folder
        _let_wait(book.folder / "notebooks" / f"{names[min(KILLED_IN, len(names)) - 1]}.ipynb")
        ours = Labbook(book, file)
        first_s = timed(ours.run)
        print(f"first run: {first_s:.1f} s")
        if args.short:
            print(f"no-op run, studies: {len(names)}; {(again_s := timed(ours.run)):.2f} s")
            return shared.write(args.json, first_s=first_s, again_s=again_s)
        for other in (Dvc(book, file), Snakemake(book, file)):
            if rounds.wanted(f"noop_{other.name}", f"resume_{other.name}"):
                other.make()
            rounds.in_turns(f"noop_{other.name}", [lambda: timed(ours.run), lambda: timed(other.run)])
            rounds.in_turns(f"resume_{other.name}", [ours.resume, other.resume])


def _arguments():
    parser = shared.parser(__doc__, rounds=6)
    parser.add_argument("--studies", type=int, default=5, help="default: 5")
    args = parser.parse_args()
    if args.short:
        args.studies, args.rounds = 1, 1
    return args


def _let_wait(notebook: Path):
    content = json.loads(notebook.read_text())
    cell = [one for one in content["cells"] if one["cell_type"] == "code"][-2]
    cell["source"] = WAITS
    notebook.write_text(json.dumps(content))


class Way:
    """One way to run all notebooks of the book: `command`, and what its `environment` has besides ours."""

    name = "labbook"
    command: tuple = (scratch_book.LABBOOK, "run")
    environment: dict = {}
    before_resume: tuple | None = None      # a command that has to be given after a kill

    def __init__(self, book, log):
        self.book, self.log = book, log

    def run(self, *command) -> None:
        shared.timed(command or self.command, self.log, cwd=self.book.folder, env={**os.environ, **self.environment})

    def forget(self) -> None:
        """As if nothing had been run yet."""
        self.book.forget_pages()

    def resume(self) -> float:
        """Seconds to the end of a run that was killed in its third notebook."""
        self.forget()
        self._killed()

        def go_on():
            if self.before_resume:
                self.run(*self.before_resume)
            self.run()

        return timed(go_on)

    def _killed(self):
        slow, begun = self.book.folder / "slow", self.book.folder / "begun"
        slow.touch()
        begun.unlink(missing_ok=True)
        with open(self.log, "ab") as out:
            process = subprocess.Popen(list(map(str, self.command)), cwd=self.book.folder, stdin=subprocess.DEVNULL,
                                       stdout=out, stderr=out, env={**os.environ, **self.environment},
                                       start_new_session=True)
        try:
            until = time.monotonic() + BEGIN_SECONDS
            while not begun.exists():
                if process.poll() is not None or time.monotonic() > until:
                    raise LabError(f"{self.name} did not come to its third notebook; see {self.log}")
                time.sleep(0.01)
        finally:
            slow.unlink()
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


class Labbook(Way):
    pass


class Dvc(Way):
    name = "dvc"

    def __init__(self, book, log):
        super().__init__(book, log)
        self.command, self.environment = peers.command_line(peers.DVC, "-m", "dvc", "repro", "-q")
        self.environment |= {"DVC_NO_ANALYTICS": "1", "HOME": str(book.folder), "DVC_SITE_CACHE_DIR":
                             str(book.folder / ".site"), "DVC_TEST": "true"}

    def make(self) -> None:
        start = [*self.command[:-2], "init", "--no-scm", "-q"]
        self.run(*start)
        self.run(*self.command[:-2], "config", "core.analytics", "false")
        (self.book.folder / "dvc.yaml").write_text(stages(self.book.studies))
        self.run()

    def forget(self) -> None:
        for path in self.book.folder.glob("dvc-*.ipynb"):
            path.unlink()
        (self.book.folder / "dvc.lock").unlink(missing_ok=True)
        self.run(*self.command[:-2], "config", "cache.dir", str(self.book.folder / f"cache-{time.time_ns()}"))


class Snakemake(Way):
    name = "snakemake"

    def __init__(self, book, log):
        super().__init__(book, log)
        start, self.environment = peers.command_line(peers.SNAKEMAKE, "-m", "snakemake")
        self.environment |= {"XDG_CACHE_HOME": str(book.folder / ".snakes"), "HOME": str(book.folder)}
        self.command = [*start, "--cores", "1", "--quiet", "all", "--rerun-incomplete"]
        self.before_resume = (*start, "--unlock", "--quiet", "all")

    def make(self) -> None:
        (self.book.folder / "Snakefile").write_text(rules(self.book.studies))
        self.run()

    def forget(self) -> None:
        for path in self.book.folder.glob("snakemake-*.ipynb"):
            path.unlink()


def stages(studies: list[str]) -> str:
    """dvc.yaml."""
    return "stages:\n" + "".join(
        f"  {study}:\n    cmd: {PAPERMILL} --no-progress-bar -k python3 notebooks/{study}.ipynb dvc-{study}.ipynb\n"
        f"    deps: [notebooks/{study}.ipynb]\n    outs: [dvc-{study}.ipynb]\n" for study in studies)


def rules(studies: list[str]) -> str:
    """Snakefile. One after the other in the studies' order, as labbook and DVC do."""
    wanted = ", ".join(f'"snakemake-{study}.ipynb"' for study in studies)
    return f"rule all:\n    input: {wanted}\n" + "".join(
        f'rule {study}:\n    input: "notebooks/{study}.ipynb"\n    output: "snakemake-{study}.ipynb"\n'
        f"    priority: {len(studies) - number}\n"
        f'    shell: "{PAPERMILL} --no-progress-bar -k python3 {{input}} {{output}}"\n'
        for number, study in enumerate(studies))


if __name__ == "__main__":
    shared.run(main)
