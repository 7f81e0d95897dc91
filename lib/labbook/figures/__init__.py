"""LOOK: one theme, one function a kind of figure."""

from labbook.figures.beside import beside
from labbook.figures.clients import rate_over_clients, time_over_clients
from labbook.figures.counted import counted
from labbook.figures.dots import dots
from labbook.figures.evidence import evidence
from labbook.figures.medians import medians
from labbook.figures.needed import repeats_table
from labbook.figures.numbers import measured, percent_saved, ratios, times
from labbook.figures.plots import over
from labbook.figures.stacked_bars import join_parts
from labbook.figures.tables import Table, conditions, differences, paper_table
from labbook.figures.timeline import timeline
from labbook.figures.topology import topology
from labbook.figures.words import name, plural, use_names

__all__ = ["Table", "beside", "conditions", "counted",
           "differences", "dots", "evidence", "join_parts",
           "measured", "medians", "name", "over", "paper_table", "percent_saved", "plural",
           "rate_over_clients", "ratios", "repeats_table", "time_over_clients", "timeline", "times",
           "topology", "use_names"]
