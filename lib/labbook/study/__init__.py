"""Run a study: points, records, summaries, fingerprint. Names are imported on first use."""

_HOMES = {
    "Study": "study", "PointsFailed": "study", "Point": "point", "Experiment": "experiment",
}
__all__ = list(_HOMES)


def __getattr__(name):
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
