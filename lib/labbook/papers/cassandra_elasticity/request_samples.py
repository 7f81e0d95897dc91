"""What a figure shows of a disk's requests: some of all, or all of a moment. Pure.

Requests are rows of t_s (epoch), sector, size_bytes, write and group (for whom it was); what comes
out are lists, which a summary can keep: <name>_t_s since `start`, <name>_gb where on the disk,
<name>_kb how large, <name>_group for whom.
"""

import numpy as np

SECTOR_BYTES = 512


def thinned(requests, start: float, most: int, name: str = "request") -> dict:
    """At most `most` of the requests, each as far from the next one in their order."""
    number = min(most, len(requests))
    picked = np.linspace(0, len(requests) - 1, number).round().astype(int) if number else []
    return _lists(requests.iloc[picked], start, name)


def closely(requests, start: float, most: int, name: str = "close") -> dict:
    """`most` requests that follow one another, from the middle in time on, or the last ones."""
    ordered = requests.sort_values("t_s", kind="stable")
    if not len(ordered):
        return _lists(ordered, start, name)
    middle = (ordered["t_s"].iloc[0] + ordered["t_s"].iloc[-1]) / 2
    first = min(int((ordered["t_s"] < middle).sum()), max(0, len(ordered) - most))
    return _lists(ordered.iloc[first:first + most], start, name)


def _lists(requests, start, name) -> dict:
    return {f"{name}_t_s": [round(float(t), 6) for t in requests["t_s"] - start],
            f"{name}_gb": [round(float(gb), 6) for gb in requests["sector"] * SECTOR_BYTES / 1e9],
            f"{name}_kb": [float(kb) for kb in requests["size_bytes"] / 1024],
            f"{name}_group": [str(group) for group in requests["group"]]}
