"""Whether what mixed clients made and deleted is so: how many names each directory must have. Pure.

Clients with directories of their own, whose every create, unlink and rename is a row: a rename stays
in its directory. What a call without success did is not known, so that it may count or not.
"""

import json
from collections import Counter

import pandas as pd


def places(clients: int, directories: int) -> dict[str, tuple[int, int]]:
    """{path, below the stream's folder: (client, number)} of each directory that they work in."""
    return {f"mixed-{client}.0/{number:05d}": (client, number)
            for client in range(clients) for number in range(directories)}


def expected(rows: pd.DataFrame, clients: int, directories: int, files: int) -> pd.DataFrame:
    """A row a directory: client, directory, least, most names that it may have by now. `rows` of
    metadata_rows.Load; the others as they were given to the clients."""
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
    """`entries`: {(client, directory): JSON of the names in it, None where it is not there}.

    load_names: names that there are; load_lost: that must be there beside them; load_back: that
    cannot all be there, since they were deleted or never made; load_off: both.
    """
    lost = back = names = 0
    for one in wanted.itertuples():
        told = entries[one.client, one.directory]
        there = len(json.loads(told)) if isinstance(told, str) else 0
        names += there
        lost += max(0, one.least - there)
        back += max(0, there - one.most)
    return {"load_names": float(names), "load_lost": float(lost), "load_back": float(back),
            "load_off": float(lost + back)}
