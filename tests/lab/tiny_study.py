"""A study of a few quick points on a real lab, run as a program of its own so that it can be killed.

    python tiny_study.py LOG [rename N]

It writes `start`, `raise`, `up`, `fill`, `measure KEY`, `down`, `end` to LOG as it goes; with
`rename N` it kills itself just before its N-th rename of a record. To fill it mounts a file system that
hangs.
"""

import os
import signal
import sys
from pathlib import Path

import sparing
from small_labs import describe

from labbook.lab import Environment, Lab
from labbook.study import Study

POINTS = 4


def main(log_path, moment=None, number="0"):
    sparing.spare()
    log = open(log_path, "a", buffering=1)
    if moment == "rename":
        kill_before_rename(int(number))
    study = Study("tiny", bring_up=lambda *_: bring_up(log))
    tiny = study.experiment("tiny", setup={"mode": ["x", "y"]}, vary={"size": [1, 2]})
    print("start", file=log)
    for point in tiny.remaining():
        with study.attempt(point) as attempt:
            host = attempt.lab.host("h1")
            print("measure", point.key, file=log)
            attempt.record([measured(host, point.size, i) for i in range(3)])
    print("down", file=log)
    study.complete()
    print("end", file=log)


def bring_up(log):
    limits = {"cores": 1, "memory": "256M", "disk": {"size": "64M", "iops": 1000}}
    description = describe({"h1": ("a", limits), "h2": ("b", {"fuse": True})}, [{"between": ["a", "b"]}])
    print("raise", file=log)
    lab = Lab.up(description, Environment("local"), os.environ["TINY_LAB"])
    print("up", file=log)
    mount(lab.host("h2"))
    print("fill", file=log)
    return lab


def mount(host):
    host.put(Path(__file__).with_name("mute_fs.py"), host.root / "mute_fs.py")
    host.run("mkdir fs")
    server = host.start("mute", f"{host.python} mute_fs.py {host.root}/fs", root=True)
    host.wait_for(lambda: "fuse.mute" in host.run("cat /proc/self/mountinfo").stdout, "the mount", 20, server)


def measured(host, size, i):
    """It takes long enough for two samples of the host, which are 0.05 s apart at the least."""
    seconds = float(host.run(f"s=$(date +%s.%N); head -c {8 * size}M /dev/zero > x; sync x; "
                             "echo $(date +%s.%N) - $s | bc -l 2> /dev/null || echo 0.01").stdout)
    return {"started_s": i, "seconds": seconds, "ok": True}


def kill_before_rename(number):
    real, left = os.rename, [number]

    def rename(source, target, **more):
        if str(target).endswith(".parquet") and ".series." not in str(target):
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return real(source, target, **more)

    os.rename = os.replace = rename


if __name__ == "__main__":
    main(*sys.argv[1:])
