"""The stores that the key-value clients can call."""

import importlib

CALLS = {"cassandra": "CassandraCalls", "mysql": "MySQLCalls"}


def calls(spec: dict):
    """The calls for spec["store"], not yet connected."""
    store = spec["store"]
    return getattr(importlib.import_module(f"labbook.workloads.{store}_calls"), CALLS[store])(spec)
