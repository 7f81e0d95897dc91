"""What the sampler of a lab of six hosts costs: its processor time, as a share of one core.

    .venv/bin/python benchmarks/sampler.py [--rounds 3] [--seconds 30] [--short] [--json FILE]

Each round is a lab of six hosts on two sites, four with limits of their own, in which each host runs a few
processes; the sampler takes a sample a second, and its processor time is read from the kernel. Beside it: how
long one sample takes, and how many bytes a point of a minute adds to its record. Root or sudo.
"""

import io
import os
import secrets
import statistics
import time
from pathlib import Path

import shared

from labbook.lab import Environment, Lab, LabDescription
from labbook.lab.series import watch
from labbook.lab.series.on_host import sampler

HOSTS, PROCESSES, MINUTE = 6, 5, 60
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def main():
    made = shared.parser(__doc__, rounds=3)
    made.add_argument("--seconds", type=float, default=30.0, help="of each round (default: 30)")
    args = made.parse_args()
    if args.short:
        args.rounds, args.seconds = 1, 3.0
    shared.check()
    shares, sample_ms, sizes = [], [], []
    for _ in range(args.rounds):
        with Lab.up(_description(), Environment("local"), f"s{secrets.token_hex(3)}") as lab:
            for host in lab.hosts.values():
                for number in range(PROCESSES):
                    host.start(f"idle{number}", "sleep 3600")
            share, samples = _share(lab, args.seconds)
            shares.append(share)
            sample_ms.append(_sample_ms(lab))
            sizes.append(_bytes_a_minute(samples))
            print(f"{100 * share:.2f} % of a core; a sample {sample_ms[-1]:.2f} ms; "
                  f"{sizes[-1] / 1024:.0f} KiB a minute", flush=True)
    print(f"sampler of {HOSTS} hosts, once a second: median {100 * statistics.median(shares):.2f} % of a core, "
          f"{100 * min(shares):.2f} to {100 * max(shares):.2f} % in {len(shares)} rounds")
    shared.write(args.json, hosts=HOSTS, seconds=args.seconds, shares=shares, sample_ms=sample_ms, bytes_a_minute=sizes)


def _description() -> LabDescription:
    limits = {"memory": "256M", "disk": {"size": "64M"}}
    hosts = {f"h{number}": {"site": "ab"[number % 2], "role": "db", "limits": limits if number <= 4 else {}}
             for number in range(1, HOSTS + 1)}
    return LabDescription.parse({"sites": ["a", "b"], "hosts": hosts, "links": [{"between": ["a", "b"]}]})


def _share(lab, seconds) -> tuple[float, list]:
    """The sampler's processor time for each second, after it has started; and its samples."""
    one, = watch.start(lab)
    try:
        first = one.take()[-1:]
        before, began = _cpu_s(one._process.pid), time.monotonic()
        time.sleep(seconds)
        return (_cpu_s(one._process.pid) - before) / (time.monotonic() - began), first + one.take()
    finally:
        one.close()


def _cpu_s(pid: int) -> float:
    """Processor seconds of a process: of the scheduler, which counts nanoseconds, else of /proc/PID/stat."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
    except (OSError, ValueError, IndexError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * TICK_S


def _sample_ms(lab) -> float:
    made = {host["name"]: host for host in lab._made["hosts"]}
    hosts = [watch.of_local(lab.id, made[name]) for name in lab.hosts] + [{"name": "m", "machine": True}]
    took = []
    for _ in range(20):
        began = time.process_time()
        sampler.sample(hosts)
        took.append(time.process_time() - began)
    return 1e3 * statistics.median(took)


def _bytes_a_minute(samples) -> float:
    """Of the series in a record, for samples of a minute (those that there are, again and again)."""
    import pyarrow as pa

    from labbook.study.records import sealed

    rows = [[samples[0][0] + number, samples[number % len(samples)][1]] for number in range(MINUTE + 1)]
    buffer = io.BytesIO(sealed.sealed(pa.Table.from_pandas(watch.table([rows]), preserve_index=False))[0])
    return len(buffer.getvalue())


if __name__ == "__main__":
    shared.run(main)
