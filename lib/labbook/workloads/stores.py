"""The protocols that the key-value clients speak: how a store is called."""

import importlib

CALLS = {"thrift": "ThriftCalls", "cql": "CQLCalls", "mysql": "MySQLCalls", "http": "HTTPCalls"}


def calls(spec: dict):
    """The calls for spec["protocol"], not yet connected."""
    protocol = spec["protocol"]
    module = importlib.import_module(f"labbook.workloads.{protocol}_calls")
    return getattr(module, CALLS[protocol])(spec)
