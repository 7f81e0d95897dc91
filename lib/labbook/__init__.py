"""labbook: published infrastructure experiments, run again on real servers."""

__version__ = "0.1.0"
