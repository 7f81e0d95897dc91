"""NAS Parallel Benchmarks: five kernels in C and MPI from NAS-95-020, and what runs them."""
