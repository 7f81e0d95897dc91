"""CPU time of processes over time: `python -I -S cpu_samples.py OUT SECONDS PID ...`.

Every SECONDS a line: seconds since the epoch, and the CPU seconds that all the processes have used, with
their threads. A process that has ended counts with what it had used when it was last seen.
"""

import os
import sys
import time

TICKS = os.sysconf("SC_CLK_TCK")


def main(out: str, between: str, *pids: str) -> None:
    used = dict.fromkeys(pids, 0.0)
    with open(out, "w", buffering=1) as file:
        while True:
            for pid in pids:
                used[pid] = cpu_seconds(pid, used[pid])
            file.write(f"{time.time():.3f} {sum(used.values()):.2f}\n")
            time.sleep(float(between))


def cpu_seconds(pid: str, otherwise: float) -> float:
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return otherwise
    return (int(fields[11]) + int(fields[12])) / TICKS


if __name__ == "__main__":
    main(*sys.argv[1:])
