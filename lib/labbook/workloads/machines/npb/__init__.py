"""NAS Parallel Benchmarks: five kernels in C and MPI from NAS-95-020, and what runs them."""

from labbook.workloads.machines.npb.build import build, facts
from labbook.workloads.machines.npb.kernels import KERNELS, SIZES, Load, latency, npb

__all__ = ["KERNELS", "SIZES", "Load", "build", "facts", "latency", "npb"]
