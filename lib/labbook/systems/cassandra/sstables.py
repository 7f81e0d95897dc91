"""A node's files: the size of its table on disk, snapshots, and their place in the page cache.

SSTables are never changed once they are complete, so a snapshot is a second name (hard link) of each.
"""

import re
import shlex

from labbook.targets import DATABASE

WRITTEN = ("data", "commitlog", "saved_caches", "hints", "cdc_raw")  # by a node that runs
# Sizes and names of the files; today's version says in transaction logs which of them are live.
LIST = """cd {folder} 2> /dev/null || exit 0
find . -maxdepth 2 -type f -printf 'file %s %f\\n' 2> /dev/null
find . -maxdepth 2 -name '*_txn_*.log' -exec sh -c 'echo log; cat "$0"' {{}} \\; 2> /dev/null
true"""
# Free bytes of the file system that has the host's folder. A host's own disk is a file behind a loop
# device: then also those of the file system that has the nearest visible folder of that file.
FREE = """df -B1 --output=avail {place}
number=$(stat -c %d {place}) || exit 0
below=/sys/dev/block/$((number >> 8 & 0xfff)):$((number & 0xff | number >> 12 & 0xfff00))
[ -e $below/loop/backing_file ] || exit 0
file=$(cat $below/loop/backing_file)
while [ ! -e "$file" ] && [ "$file" != / ]; do file=$(dirname "$file"); done
df -B1 --output=avail -- "$file"
"""
RECORD = re.compile(r"^(ADD|REMOVE|COMMIT|ABORT):\[([^,\]]*)", re.IGNORECASE)
DROP = """import os, sys
for folder, _, names in os.walk(sys.argv[1]):
    for name in names:
        try:
            file = os.open(os.path.join(folder, name), os.O_RDONLY)
        except FileNotFoundError:
            continue
        try:
            os.fsync(file)  # dirty pages would stay
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(file)
"""
LINK_SECONDS = 300


def table_bytes(node) -> int:
    """Bytes on disk of the table's live SSTables; the node need not run."""
    return live_bytes(_listed(node))


def arriving_bytes(node) -> int:
    """The same, with SSTables that are still being written."""
    return sum(_sizes(_listed(node)).values())


def table_files(node) -> list[int]:
    """Data bytes of each of the table's live SSTables, the largest first."""
    return sorted((size for name, size in live(_listed(node)).items() if name.endswith("-Data.db")),
                  reverse=True)


def live_bytes(listed: str) -> int:
    return sum(live(listed).values())


def live(listed: str) -> dict[str, int]:
    """{file name: bytes} of LIST's output, without files that are incomplete or to be deleted."""
    sizes = _sizes(listed)
    gone = {name.removesuffix("Compacted") for name in sizes if name.endswith("-Compacted")}
    gone |= _not_live(listed)
    return {name: size for name, size in sizes.items()
            if "-tmp-" not in name and name.rpartition("-")[0] + "-" not in gone}


def snapshot(node, name: str) -> None:
    """Save the data of a node that does not run."""
    node.host.run(_at_home(node, f"rm -rf snapshot-{name} && cp -al data snapshot-{name}"), timeout=LINK_SECONDS)


def restore(node, name: str) -> None:
    """Replace all files of a node that does not run with those of a snapshot; what it knew of other nodes
    is gone too."""
    node.host.run(_at_home(node, f"rm -rf {' '.join(WRITTEN)} && cp -al snapshot-{name} data"),
                  timeout=LINK_SECONDS)


def forget(node, name: str) -> None:
    """Remove a snapshot."""
    node.host.run(_at_home(node, f"rm -rf snapshot-{name}"), timeout=LINK_SECONDS)


def drop_page_cache(node) -> None:
    """Drop the node's files from the page cache: they are read from the disk next time."""
    node.run(node.host.python, "-I", "-S", "-c", DROP, node.home / "data", timeout=LINK_SECONDS)


def free_bytes(host) -> int:
    """Free bytes of the disk that has the host's folder. Where that disk is a file, which may be
    sparse, no more than are free where the file lies."""
    output = host.run(FREE.format(place=shlex.quote(str(host.root)))).stdout
    return min(int(line) for line in output.split() if line.isdigit())


def _listed(node) -> str:
    folder = shlex.quote(str(node.home / "data" / DATABASE))
    return node.host.run(LIST.format(folder=folder)).stdout


def _at_home(node, command: str) -> str:
    return f"cd {shlex.quote(str(node.home))} && {command}"


def _sizes(listed: str) -> dict[str, int]:
    files = (line.split(" ", 2) for line in listed.splitlines() if line.startswith("file "))
    return {name: int(size) for _, size, name in files if "_txn_" not in name}


def _not_live(listed: str) -> set[str]:
    """Prefixes of the names of SSTables that are not complete yet, or replaced already."""
    prefixes = set()
    for log in re.split(r"^log$", listed, flags=re.MULTILINE)[1:]:
        records = [record.groups() for record in map(RECORD.match, log.splitlines()) if record]
        done = any(kind.upper() == "COMMIT" for kind, _ in records)
        prefixes |= {path.rpartition("/")[2] for kind, path in records
                  if kind.upper() == ("REMOVE" if done else "ADD")}
    return prefixes
