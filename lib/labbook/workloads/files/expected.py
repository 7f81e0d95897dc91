"""How many names each directory must have after a stream of mixed calls. Pure functions.

For clients with directories of their own, whose every create, unlink and rename is a row; a rename
stays in its directory. Whether a failed call had an effect is unknown, so it may count or not.
"""

import json
from collections import Counter

import pandas as pd


def places(clients: int, directories: int) -> dict[str, tuple[int, int]]:
    """{path below the stream's folder: (client, number)} of each directory of the clients."""
    return {f"mixed-{client}.0/{number:05d}": (client, number)
            for client in range(clients) for number in range(directories)}


def expected(rows: pd.DataFrame, clients: int, directories: int, files: int) -> pd.DataFrame:
    """A row a directory: client, directory, and the least and most names that it may have.

    `rows`: as of begin_metadata's Load; the other arguments are those of begin_metadata.
    """
    first = Counter(i // (files + 1) for i in range(files * directories))
    found = []
    for client in range(clients):
        for number in range(directories):
            mine = rows[(rows["client"] == client) & (rows["directory"] == number)]
            made, gone = (mine[mine["op"] == op]["ok"].astype(bool) for op in ("create", "unlink"))
            sure = first[number] + int(made.sum()) - int(gone.sum())
            found.append((client, number, sure - int((~gone).sum()), sure + int((~made).sum())))
    return pd.DataFrame(found, columns=["client", "directory", "least", "most"])


def off(wanted: pd.DataFrame, entries: dict) -> dict[str, float]:
    """How far directories are from what is expected.

    `entries`: {(client, directory): JSON of the names in it, None where it does not exist}.
    load_names: names that exist; load_lost: names that are missing; load_back: names too many,
    which were deleted or never made; load_off: lost and back together.
    """
    lost = back = names = 0
    for one in wanted.itertuples():
        listed = entries[one.client, one.directory]
        there = len(json.loads(listed)) if isinstance(listed, str) else 0
        names += there
        lost += max(0, one.least - there)
        back += max(0, there - one.most)
    return {"load_names": float(names), "load_lost": float(lost), "load_back": float(back),
            "load_off": float(lost + back)}
