"""The book's tables of the models of disks, as HTML."""

from labbook.lab.disk import models
from labbook.pipeline.book.markup import escape, raw, row, table

KB, GB = 1 << 10, 10**9
WORDS = {"overhead_ms": "overhead of a request, ms", "mb_per_s": "rate, MB/s", "rpm": "turns a minute",
         "track_ms": "seek to the next track, ms", "stroke_ms": "seek over the whole disk, ms",
         "span_gb": "size of the whole disk, GB", "fixed_ms": "fixed time on top, unless in sequence, ms",
         "channels": "requests served at a time", "order": "order of waiting requests"}
HEADS = ("Figure", "Value", "Source")
BLOCKS = (4 * KB, 128 * KB)


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
