"""A study of a few quick points on hosts over SSH, as a program of its own that can be killed.

    python real_study.py LOG LAB

It writes `start`, `raise`, `up`, `measure KEY`, `down`, `end` to LOG as it goes.
"""

import sys

from real_labs import small_lab

from labbook.lab import Environment, Lab
from labbook.study import Study

POINTS = 4
WORK = "head -c 2M /dev/zero > x && sync x && sleep 0.1 && date +%s.%N"


def main(log_path, lab_id):
    log = open(log_path, "a", buffering=1)

    def note(*words):
        print(*words, file=log)

    def bring_up(_, environment):
        note("raise")
        lab = Lab.up(small_lab(), Environment.load(environment), lab_id)
        lab.host("server").start("server", "sleep 1000")
        note("up")
        return lab

    study = Study("tiny", "environments/hosts.yml", bring_up=bring_up)
    tiny = study.experiment("tiny", setup={"mode": ["x", "y"]}, vary={"size": [1, 2]})
    note("start")
    for point in tiny.remaining():
        with study.attempt(point) as attempt:
            note("measure", point.key)
            ended = [float(attempt.lab.host("server").run(WORK).stdout) for _ in range(3)]
            attempt.record([{"started_s": at, "seconds": 0.1, "ok": True} for at in ended])
    note("down")
    study.complete()
    note("end")


if __name__ == "__main__":
    main(*sys.argv[1:])
