"""How many tasks work and wait in the stages of a Cassandra node, over time.

A node with the setting `stage_samples_ms` writes them itself: see on_host/StageSampler.java.
"""

import re

from labbook.errors import SystemFailure
from labbook.lab.clock import ahead_s
from labbook.systems.cassandra.config import STAGES_FILE as FILE   # in the node's home

COLUMNS = ("at_s", "stage", "active", "waiting")
ENDED = re.compile("^# (.*)", re.M)     # the sampler's last line, with what ended it


def begin(node) -> tuple[int, float]:
    """Where the samples from now on begin, for `since`: their place in the file, and how far the host's
    clock is ahead of ours, in s."""
    return int(node.run("stat", "-c", "%s", node.home / FILE).stdout), ahead_s(node.host)


def since(node, begun: tuple[int, float], first: float, last: float):
    """DataFrame of the samples from `first` to `last`, in s since 1970 by our clock: COLUMNS, a row a stage
    with tasks (at_s: since `first`), and the number of samples. `begun`: of `begin`. SystemFailure without a
    sample, or where the sampler has ended."""
    size, ahead = begun
    text = node.run("tail", "-c", f"+{size + 1}", node.home / FILE).stdout
    frame, samples = parse(text, first + ahead, last + ahead)
    ended = ENDED.search(text)
    if ended or not samples:
        reason = f"it ended with {ended[1]}" if ended else f"none between {first:.3f} and {last:.3f} s"
        raise SystemFailure(f"{node.host.name}: Cassandra's stages were not sampled: {reason}",
                            log=node.process.log_tail())
    return frame, samples


def parse(text: str, first: float, last: float):
    """(DataFrame, number of samples) of the lines between two times; the first and the last line may be cut."""
    import pandas as pd

    rows, samples = [], 0
    for line in text.splitlines(keepends=True):
        at, *stages = line.split() if line.endswith("\n") else [""]
        if not at.isdigit() or not first <= int(at) / 1000 <= last:
            continue
        samples += 1
        for name, active, waiting in (stage.rsplit(":", 2) for stage in stages):
            rows.append((int(at) / 1000 - first, name, int(active), int(waiting)))
    return pd.DataFrame(rows, columns=list(COLUMNS)), samples


def queue(frame, samples: int, stage: str) -> dict:
    """Of a stage, over all samples: stage_active and stage_waiting, tasks that are worked on and that wait,
    on average; stage_most_waiting."""
    own = frame[frame["stage"] == stage]
    return {"stage_active": float(own["active"].sum()) / samples,
            "stage_waiting": float(own["waiting"].sum()) / samples,
            "stage_most_waiting": int(own["waiting"].max()) if len(own) else 0, "stage_samples": samples}
