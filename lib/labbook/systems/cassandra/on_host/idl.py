"""The Thrift types of the papers' Cassandra versions; imports nothing but thriftpy2."""

from functools import cache
from pathlib import Path

IDL = Path(__file__).with_name("cassandra.thrift")


@cache
def idl():
    """The module of Thrift types: one a process, so that enums and exceptions can be compared."""
    import thriftpy2

    return thriftpy2.load(str(IDL), module_name="labbook_cassandra_thrift")
