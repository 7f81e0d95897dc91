"""Twelve tests by the published definitions of UnixBench, in C of our own, and what runs them."""

from labbook.workloads.machines.unixbench.build import build, facts
from labbook.workloads.machines.unixbench.scores import TESTS
from labbook.workloads.machines.unixbench.suite import Load, unixbench_style

__all__ = ["TESTS", "Load", "build", "facts", "unixbench_style"]
