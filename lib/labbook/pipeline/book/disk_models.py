"""The book's tables of the models of disks, as HTML, and of how close a modelled disk comes to its model, from
data/benchmarks/measured/modelled_disk.json, which benchmarks/modelled_disk.py writes."""

import json
import statistics

from labbook import paths
from labbook.lab.disk import models
from labbook.pipeline.book.markup import escape, raw, row, table

KB, GB = 1 << 10, 10**9
WORDS = {"overhead_ms": "overhead of a request, ms", "mb_per_s": "rate, MB/s", "rpm": "turns a minute",
         "track_ms": "seek to the next track, ms", "stroke_ms": "seek over the whole disk, ms",
         "span_gb": "size of the whole disk, GB", "fixed_ms": "fixed time on top, unless in sequence, ms",
         "channels": "requests served at a time", "order": "order of waiting requests"}
HEADS = ("Figure", "Value", "Source")
BLOCKS = (4 * KB, 128 * KB)
ROUND_HEADS = ("request", "fio / model", "disk's log / model", "fio / fio on the machine's disk")
SEQUENTIAL, RANDOM = "sequential read 128 KB", "random read 128 KB"


def page() -> str:
    """Markdown: each model with its figures, their sources, and what they come to."""
    return raw("".join(map(_model, models.models().values())))


def _model(model) -> str:
    described = models.described()[model.name]
    rows = "".join(row(HEADS, map(escape, (WORDS[key], figure["value"], figure["source"])))
                   for key, figure in described.items() if key != "is")
    return (f'<section><h3 id="{model.name}">{model.name}</h3>'
            f'<p>{escape(described["is"][:1].upper() + described["is"][1:])}. '
            f'{escape(_outcome(model))}</p>{table(f"Figures of {model.name}", HEADS, rows)}</section>')


def _outcome(model) -> str:
    """What one request after the other takes, at random over a modelled disk of 8 GB and in sequence."""
    parts = [f"{size // KB} KB: {model.sequential_ms(size):.2f} ms in sequence, "
             f"{model.random_ms(size, 8 * GB, 8 * GB):.2f} ms at random" for size in BLOCKS]
    return f"One read at a time, on 8 GB; {'; '.join(parts)}."


def measured() -> str:
    """Markdown: each model that was measured, a row a kind of request, and what random reads cost."""
    file = paths.checkout() / "data" / "benchmarks" / "measured" / "modelled_disk.json"
    if not file.is_file():
        return "*Nothing was measured yet.*\n"
    found = json.loads(file.read_text())
    return "\n".join(_measured(name, one, found["machine"]) for name, one in found["samples"].items())


def _measured(name: str, found: dict, machine: dict) -> str:
    rounds, model_ms = found["rounds"], found["model_ms"]
    by = {disk: {kind: [one[disk][kind] for one in rounds] for kind in model_ms} for disk in rounds[0]}
    rows = "".join(row(ROUND_HEADS, map(escape, (
        kind, _over(by["modelled"][kind], [ms] * len(rounds)), _over(by["log"][kind], [ms] * len(rounds)),
        _over(by["modelled"][kind], by["own"][kind])))) for kind, ms in model_ms.items())
    cost = {disk: statistics.median(one / other for one, other in zip(by[disk][RANDOM], by[disk][SEQUENTIAL]))
            for disk in ("modelled", "own")}
    return raw(table(f"{name} beside its model", ROUND_HEADS, rows, "numbers")) + (
        f"\n`{name}`, medians of {len(rounds)} rounds, and their range, on {machine['cores']} cores with Linux "
        f"{machine['kernel']}; the load average was {machine['load']:.1f} at the end. A random read of 128 KB takes as "
        f"long as {cost['modelled']:.1f} sequential ones by fio, {model_ms[RANDOM] / model_ms[SEQUENTIAL]:.1f} by the "
        f"model, and {cost['own']:.2f} on the machine's own disk. {found['late']:.2%} of the replies were late.\n")


def _over(ours: list, theirs: list) -> str:
    found = [one / other for one, other in zip(ours, theirs)]
    return f"{statistics.median(found):.2f} ({min(found):.2f} to {max(found):.2f})"
