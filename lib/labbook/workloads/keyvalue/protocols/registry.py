"""How a store is called: by protocol, and by client."""

import importlib

CALLS = {"thrift": "ThriftCalls", "cql": "CQLCalls", "mysql": "MySQLCalls", "http": "HTTPCalls"}
OPS = {"mysql": ("read", "write", "update")}  # of a protocol; of the others:
READ_AND_WRITE = ("read", "write")
ALL_OPS = OPS["mysql"]
CASSANDRA = ("thrift", "cql")  # whose values may be any bytes, and which take many rows at once


def ops(protocol: str) -> tuple[str, ...]:
    """What a client can do by this protocol."""
    return OPS.get(protocol, READ_AND_WRITE)


def of_client(spec: dict, number: int) -> dict:
    """The spec of one client, whose server is that of the addresses which its number falls on."""
    addresses = spec["addresses"]
    return dict(spec, client=number, address=addresses[number % len(addresses)])


def calls(spec: dict):
    """The calls for spec["protocol"], not yet connected."""
    protocol = spec["protocol"]
    module = importlib.import_module(f"{__package__}.{protocol}")
    return getattr(module, CALLS[protocol])(spec)
