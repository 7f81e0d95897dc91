"""A node's files: what of its table is on disk, a copy of all of them, and the page cache of them.

SSTables are never written again once they are there, so a copy is a second name for each.
"""

import re
import shlex

from labbook.targets import DATABASE

MADE = ("data", "commitlog", "saved_caches", "hints", "cdc_raw")  # by a node that runs
# Sizes and names of the files; today's versions tell in logs which of them count.
LIST = """cd {folder} 2> /dev/null || exit 0
find . -maxdepth 2 -type f -printf 'file %s %f\\n' 2> /dev/null
find . -maxdepth 2 -name '*_txn_*.log' -exec sh -c 'echo log; cat "$0"' {{}} \\; 2> /dev/null
true"""
# A disk of one's own is a file behind a loop device. What is nearest to it of what can be seen from
# here tells the disk below.
FREE = """df -B1 --output=avail {place}
number=$(stat -c %d {place}) || exit 0
below=/sys/dev/block/$((number >> 8 & 0xfff)):$((number & 0xff | number >> 12 & 0xfff00))
[ -e $below/loop/backing_file ] || exit 0
file=$(cat $below/loop/backing_file)
while [ ! -e "$file" ] && [ "$file" != / ]; do file=$(dirname "$file"); done
df -B1 --output=avail -- "$file"
"""
RECORD = re.compile(r"^(ADD|REMOVE|COMMIT|ABORT):\[([^,\]]*)", re.IGNORECASE)
FORGET = """import os, sys
for folder, _, names in os.walk(sys.argv[1]):
    for name in names:
        try:
            file = os.open(os.path.join(folder, name), os.O_RDONLY)
        except FileNotFoundError:
            continue
        try:
            os.fsync(file)  # what is not on disk yet would stay
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(file)
"""
COPY_SECONDS = 300


def table_bytes(node) -> int:
    """Bytes on disk of the table's live SSTables; the node need not run."""
    return live_bytes(_listed(node))


def arriving_bytes(node) -> int:
    """The same with those that are being written."""
    return sum(_sizes(_listed(node)).values())


def table_files(node) -> list[int]:
    """Bytes of the data of each of the table's live SSTables, the largest first."""
    return sorted((size for name, size in live(_listed(node)).items() if name.endswith("-Data.db")),
                  reverse=True)


def live_bytes(listed: str) -> int:
    return sum(live(listed).values())


def live(listed: str) -> dict[str, int]:
    """Bytes by name of what LIST tells, without files that are not whole yet or are to go."""
    sizes = _sizes(listed)
    gone = {name.removesuffix("Compacted") for name in sizes if name.endswith("-Compacted")}
    gone |= _not_counting(listed)
    return {name: size for name, size in sizes.items()
            if "-tmp-" not in name and name.rpartition("-")[0] + "-" not in gone}


def keep(node) -> None:
    """Put a copy of the data of a node that does not run aside."""
    node.host.run(_at_home(node, "rm -rf kept && cp -al data kept"), timeout=COPY_SECONDS)


def put_back(node) -> None:
    """Have of a node that does not run what was kept, and nothing else: what it knew of other
    nodes goes as well."""
    node.host.run(_at_home(node, f"rm -rf {' '.join(MADE)} && cp -al kept data"),
                  timeout=COPY_SECONDS)


def forget(node) -> None:
    """Have the node's files read from its disk the next time."""
    node.run(node.host.python, "-I", "-S", "-c", FORGET, node.home / "data", timeout=COPY_SECONDS)


def free_bytes(host) -> int:
    """Of the disk that the host's folder is on; where that is a file, which may be sparse, and the
    disk that it lies on has less, of that one."""
    said = host.run(FREE.format(place=shlex.quote(str(host.root)))).stdout
    return min(int(line) for line in said.split() if line.isdigit())


def _listed(node) -> str:
    folder = shlex.quote(str(node.home / "data" / DATABASE))
    return node.host.run(LIST.format(folder=folder)).stdout


def _at_home(node, command: str) -> str:
    return f"cd {shlex.quote(str(node.home))} && {command}"


def _sizes(listed: str) -> dict[str, int]:
    files = (line.split(" ", 2) for line in listed.splitlines() if line.startswith("file "))
    return {name: int(size) for _, size, name in files if "_txn_" not in name}


def _not_counting(listed: str) -> set[str]:
    """How the names begin of SSTables that are not there yet or not any more."""
    found = set()
    for log in re.split(r"^log$", listed, flags=re.MULTILINE)[1:]:
        records = [record.groups() for record in map(RECORD.match, log.splitlines()) if record]
        done = any(kind.upper() == "COMMIT" for kind, _ in records)
        found |= {path.rpartition("/")[2] for kind, path in records
                  if kind.upper() == ("REMOVE" if done else "ADD")}
    return found
