"""Sample every MDS's cache and counters over time, by a process beside each one."""

import json
from contextlib import suppress

import pandas as pd

from labbook.errors import LabbookError
from labbook.lab.clock import ahead_s
from labbook.systems.ceph.admin_socket import tools
from labbook.systems.cluster import in_parallel

SAMPLER = "ceph_sampler"    # name of the process
FILE = f"{SAMPLER}.rows"    # on the host
END_SECONDS = 5
FIRST_SECONDS = 20
COLUMNS = {"t_s": float, "daemon": object, "rank": "Int64", "state": object, "inodes": int,
           "dentries": int, "dirs": int, "exported": int, "imported": int, "exported_inodes": int,
           "imported_inodes": int, "requests": int, "forward": int, "subtrees": int,
           "owned": object}


class Watch:
    """Samples of all MDSs, about every `seconds_between`, from `begin` to `end`.

    Columns of the rows: t_s (epoch seconds, driver's clock), daemon, rank (NA: a standby), state;
    in the cache now: inodes, dentries, dirs; since the MDS started: exported and imported (subtrees),
    exported_inodes, imported_inodes, requests, forward; subtrees (number) and owned (list of paths,
    see ceph_tools/parse.py). An MDS has no rows while it does not run.
    """

    def __init__(self, mdss, seconds_between: float, serving=()):
        """`serving`: names of the MDSs with a rank; `begin` waits for a first sample of these."""
        self.mdss, self.seconds_between, self.serving = list(mdss), seconds_between, set(serving)
        self.rows: pd.DataFrame | None = None

    def begin(self) -> "Watch":
        try:
            in_parallel(self.mdss, self._begin)
        except BaseException:
            self._kill()
            raise
        return self

    def end(self) -> pd.DataFrame:
        """The samples of all MDSs, in the order of time."""
        if self.rows is None:
            texts = in_parallel(self.mdss, self._end)
            ahead = in_parallel(self.mdss, lambda mds: ahead_s(mds.host))
            self.rows = rows({mds.id: text for mds, text in zip(self.mdss, texts)})
            self.rows["t_s"] -= self.rows["daemon"].map(
                {mds.id: one for mds, one in zip(self.mdss, ahead)}).astype(float)
        return self.rows

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.end()
        else:
            self._kill()

    def _kill(self) -> None:
        """End all samplers, without an error of its own: there is one to report."""
        with suppress(LabbookError):
            in_parallel(self.mdss, _end_sampler)

    def _begin(self, mds):
        _end_sampler(mds)
        mds.host.run(f"rm -f {FILE}")
        mds.host.start(SAMPLER, tools(mds.host, mds.home, "sample", mds.socket,
                                      self.seconds_between, FILE))
        if mds.id in self.serving and mds.process.alive():      # what follows must not be missed
            mds.host.wait_for(lambda: not mds.host.run(f"test -s {FILE}", check=False).exit_code,
                              "the first sample", FIRST_SECONDS, mds.host.process(SAMPLER))

    def _end(self, mds) -> str:
        process = mds.host.process(SAMPLER)
        if not process.alive():
            raise LabbookError(f"{mds.host.name}: the sampler ended: {process.log_tail(5)}")
        process.stop(END_SECONDS)
        text = mds.host.get(FILE).decode()
        mds.host.run(f"rm -f {FILE}")
        return text


def rows(texts: dict[str, str]) -> pd.DataFrame:
    """Parse what the samplers wrote, by daemon; an incomplete last line is dropped."""
    found = []
    for daemon, text in texts.items():
        for line in text.splitlines(keepends=True):
            if line.endswith("\n"):
                sample = json.loads(line)
                found.append({**sample, "daemon": daemon, "subtrees": len(sample["owned"])})
    frame = pd.DataFrame(found, columns=list(COLUMNS)).astype(COLUMNS)
    return frame.sort_values("t_s", ignore_index=True)


def _end_sampler(mds) -> None:
    sampler = mds.host.process(SAMPLER)
    if sampler is not None:
        sampler.kill()
