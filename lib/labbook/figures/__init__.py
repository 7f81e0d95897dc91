"""Figures and tables of a page: one theme, one function for each kind."""

from labbook.figures.anomalies import anomaly_table
from labbook.figures.exploring import chart
from labbook.figures.numbers import counted, measured, name, percent_saved, plural, times, use_names, with_values
from labbook.figures.plots import dot_chart, line_chart, rate_over_clients, time_over_clients
from labbook.figures.point_series import point_view
from labbook.figures.stacked_bars import stacked_bars
from labbook.figures.tables import (
    Table,
    conditions,
    differences,
    evidence_table,
    median_table,
    outcome_table,
    paper_table,
    paper_vs_measured,
    ratios,
    repeats_table,
)
from labbook.figures.timeline import timeline
from labbook.figures.topology import topology
from labbook.study.explorer import exploring, showing

exploring.chart, showing.draw = chart, point_view

__all__ = ["Table", "anomaly_table", "conditions", "counted", "differences", "dot_chart", "evidence_table",
           "line_chart", "measured", "median_table", "name", "outcome_table", "paper_table", "paper_vs_measured",
           "percent_saved", "plural", "rate_over_clients", "ratios", "repeats_table", "stacked_bars",
           "time_over_clients", "timeline", "times", "topology", "use_names", "with_values"]
