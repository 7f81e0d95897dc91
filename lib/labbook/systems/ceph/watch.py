"""What each MDS has in its cache over time: a sampler beside each one, and their rows together."""

import json
from contextlib import suppress

import pandas as pd

from labbook.errors import LabbookError
from labbook.lab.clock import ahead_s
from labbook.systems.ceph.admin_socket import tools
from labbook.systems.cluster import each

SAMPLER = "ceph_sampler"    # the process's and the file's name
END_SECONDS = 5
FIRST_SECONDS = 20
COLUMNS = {"t_s": float, "daemon": object, "rank": "Int64", "state": object, "inodes": int,
           "dentries": int, "dirs": int, "exported": int, "imported": int, "exported_inodes": int,
           "imported_inodes": int, "requests": int, "forward": int, "subtrees": int,
           "owned": object}


class Watch:
    """A look at each MDS about every `seconds_between`, from `begin`, which waits for the first, to `end`.

    Rows: t_s (epoch, by our clock), daemon, rank (None: a spare's), state, inodes, dentries,
    dirs (cached now), exported and imported (trees, since its start), exported_inodes,
    imported_inodes, requests, forward, subtrees (how many it is in charge of), owned (a list of
    their paths; see the sampler's `owned`). None of an MDS that does not run; one that is started
    again is looked at again.
    """

    def __init__(self, mdss, seconds_between: float, serving=()):
        """`serving`: names of those with a rank; one that never had any has nothing to tell."""
        self.mdss, self.seconds_between, self.serving = list(mdss), seconds_between, set(serving)
        self.rows: pd.DataFrame | None = None

    def begin(self) -> "Watch":
        each(self.mdss, self._begin)
        return self

    def end(self) -> pd.DataFrame:
        """The rows of all, in the order of time."""
        if self.rows is None:
            told = each(self.mdss, self._end)
            ahead = each(self.mdss, lambda mds: ahead_s(mds.host))
            self.rows = rows({mds.id: text for mds, text in zip(self.mdss, told)})
            self.rows["t_s"] -= self.rows["daemon"].map(
                {mds.id: one for mds, one in zip(self.mdss, ahead)}).astype(float)
        return self.rows

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.end()
        else:
            with suppress(LabbookError):  # what went wrong first is what must be told
                each(self.mdss, lambda mds: mds.host.process(SAMPLER).kill())

    def _begin(self, mds):
        earlier = mds.host.process(SAMPLER)
        if earlier is not None:
            earlier.kill()
        mds.host.run(f"rm -f {_file(mds)}")
        mds.host.start(SAMPLER, tools(mds.host, mds.home, "sample", mds.socket,
                                      self.seconds_between, _file(mds)))
        if mds.id in self.serving and mds.process.alive():      # what comes now would be missed
            mds.host.wait_for(lambda: not mds.host.run(f"test -s {_file(mds)}", check=False).exit_code,
                              "a first look at it", FIRST_SECONDS, mds.host.process(SAMPLER))

    def _end(self, mds) -> str:
        process = mds.host.process(SAMPLER)
        if not process.alive():
            raise LabbookError(f"{mds.host.name}: the sampler ended: {process.log_tail(5)}")
        process.stop(END_SECONDS)
        text = mds.host.get(_file(mds)).decode()
        mds.host.run(f"rm -f {_file(mds)}")
        return text


def _file(mds) -> str:
    return f"{SAMPLER}.rows"


def rows(told: dict[str, str]) -> pd.DataFrame:
    """Of what the samplers wrote, by daemon; a last line that is cut is left out."""
    found = []
    for daemon, text in told.items():
        for line in text.splitlines(keepends=True):
            if line.endswith("\n"):
                look = json.loads(line)
                found.append({**look, "daemon": daemon, "subtrees": len(look["owned"])})
    frame = pd.DataFrame(found, columns=list(COLUMNS)).astype(COLUMNS)
    return frame.sort_values("t_s", ignore_index=True)
