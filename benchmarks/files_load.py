"""Load on a file system: labbook's clients of files beside bonnie++ itself.

    .venv/bin/python benchmarks/files_load.py [--files 65536] [--rounds 6] [--short] [--json FILE]

One client creates, stats and deletes empty files in one folder of a host, sequentially and at random, in turns with
bonnie++, which does the same. A figure is files a second of the sequential phases by the clock, which of bonnie++
includes making the files' names. Root, or sudo.
"""

import os

import shared
from rounds import Rounds

from labbook.lab import Environment, Lab, LabDescription
from labbook.workloads.crew.crew import Crew
from labbook.workloads.files.bonnie import THOUSAND, bonnie
from labbook.workloads.files.load import metadata

OPS = ("create", "stat", "delete")
SECONDS = 120       # at most, of a run


def main():
    parser = shared.parser(__doc__, rounds=6)
    parser.add_argument("--files", type=int, default=64 * THOUSAND, help=f"a multiple of {THOUSAND}; default: 65536")
    args = parser.parse_args()
    if args.short:
        args.files, args.rounds = 16 * THOUSAND, 1      # of fewer a phase may take no time by the clock
    shared.check(packages=("bonnie++",))
    rounds = Rounds("files_load", args, shared.versions("bonnie++"), files=args.files)
    description = LabDescription.parse({"sites": ["lan"], "hosts": {"client": {"site": "lan", "role": "client"}}})
    with Lab.up(description, Environment("benchmark"), lab_id=f"b{os.urandom(3).hex()}") as lab:
        crew, host = Crew.of(lab), lab.host("client")
        folder = host.root / "files"
        host.run("mkdir files")

        def ours() -> dict:
            found = metadata(crew, [str(folder)], pattern="bonnie", directories=1, files=args.files, seed=1,
                             seconds_at_most=SECONDS).metrics
            return {op: found[f"sequential_{op}_per_s"] for op in OPS}

        def theirs() -> dict:
            found = bonnie(host, folder, directories=1, files=args.files, seconds_at_most=SECONDS).metrics
            return {op: found[f"by_clock_sequential_{op}_per_s"] for op in OPS}

        def settled(way) -> dict:
            """After what the other's turn left to be written, which bonnie++'s own sync() would wait for."""
            os.sync()
            return way()

        for way in (ours, theirs):      # the first turn of each meets a cold file system
            settled(way)
        for number in rounds.left(OPS[-1]):
            found = {way: settled(way) for way in ((ours, theirs) if number % 2 else (theirs, ours))}
            for op in OPS:
                rounds.add(op, found[ours][op], found[theirs][op])
    rounds.show(*OPS)


if __name__ == "__main__":
    shared.run(main)
