"""All benchmarks that set labbook beside something else, one after the other: `make benchmarks`.

    .venv/bin/python benchmarks/every.py [NAME ...] [--rounds N] [--fresh] [--publish]

About an hour on a machine that does nothing else. What is done is kept in build/benchmarks/, so a run that was
interrupted goes on where it was; --fresh measures all of it anew. --publish then copies the rows that are
complete to data/benchmarks/, of which the book makes its page: it does so by itself when every row is done.
Root, or sudo without a password.
"""

import argparse
import json
import os
import subprocess
import sys
import time

import shared
import yaml

from labbook import atomic_files, paths
from labbook.errors import InputError
from labbook.pipeline.setup import install

FOLDER = shared.ROOT / "data" / "benchmarks"
BUSY = 0.5      # of the machine's load before the first one: what is measured now counts less


def main() -> int:
    listed = yaml.safe_load((FOLDER / "rows.yml").read_text())
    args = _arguments(listed)
    names = args.names or list(listed)
    if args.fresh:
        for name in names:
            (paths.build_dir() / "benchmarks" / f"{name}.json").unlink(missing_ok=True)
    if os.getloadavg()[0] > BUSY:
        say(f"the machine is not idle (load {os.getloadavg()[0]:.1f}); each round is kept with its load")
    failed, minutes = [], sum(listed[name]["minutes"] for name in names)
    for number, name in enumerate(names, 1):
        say(f"{number} of {len(names)}: {name}, about {listed[name]['minutes']} minutes; {minutes} to go")
        began = time.monotonic()
        if subprocess.run(command(name, args)).returncode:
            failed.append(name)
        minutes -= listed[name]["minutes"]
        say(f"{name} {'failed' if name in failed else 'done'} after {(time.monotonic() - began) / 60:.1f} minutes")
    if args.publish or not failed and not args.names:
        for name in names:
            publish(name, listed[name]["rows"])
    if failed:
        say(f"failed: {' '.join(failed)}. Type the same again to go on with these")
    return 1 if failed else 0


def _arguments(listed):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="of a benchmark; default: all")
    parser.add_argument("--rounds", type=int, help="of each row; default: as each has it")
    parser.add_argument("--fresh", action="store_true", help="forget what earlier runs measured")
    parser.add_argument("--publish", action="store_true", help="copy what is complete to data/benchmarks/")
    args = parser.parse_args()
    for name in args.names:
        if name not in listed:
            raise InputError(f"no benchmark {name!r}", key="NAME", allowed=list(listed))
    return args


def command(name: str, args) -> list[str]:
    """Mininet needs root itself; the others call labbook's helper."""
    before = install.as_root() if name == "lab_up" else []
    rounds = ["--rounds", str(args.rounds)] if args.rounds else []
    return [*before, sys.executable, str(shared.ROOT / "benchmarks" / f"{name}.py"), *rounds]


def publish(name: str, rows: dict) -> None:
    """Copy the rows that have all their rounds, and no fewer than are published; the others stay as they were. That a row cannot be
    measured here is copied where nothing is published."""
    measured, published = paths.build_dir() / "benchmarks" / f"{name}.json", FOLDER / f"{name}.json"
    before = json.loads(published.read_text())["rows"] if published.is_file() else {}
    now = json.loads(measured.read_text()) if measured.is_file() else {"rows": {}, "count": 0}
    whole = {row: of_row for row, of_row in now["rows"].items()
             if len(of_row.get("rounds", ())) >= max(now["count"], len(before.get(row, {}).get("rounds", ())))
             or "absent" in of_row and row not in before}
    found = {row: whole.get(row) or before[row] for row in rows if row in whole or row in before}
    if found != before:
        text = json.dumps({"rows": found}, indent=1) + "\n"
        atomic_files.write_whole(published, lambda file: file.write(text.encode()))
        shared.give_to_owner(published)
        say(f"wrote {published.relative_to(shared.ROOT)}")


def say(text: str) -> None:
    print(f"benchmarks: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    shared.run(lambda: sys.exit(main()))
