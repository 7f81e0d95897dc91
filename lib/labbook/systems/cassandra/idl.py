"""The papers' Cassandra in Thrift's types, for whoever runs where nothing but Thrift is."""

from functools import cache
from pathlib import Path

IDL = Path(__file__).with_name("cassandra.thrift")


@cache
def idl():
    """The module of Thrift types; one a process, for its enums and exceptions to be comparable."""
    import thriftpy2

    return thriftpy2.load(str(IDL), module_name="labbook_cassandra_thrift")
