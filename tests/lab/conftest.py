"""Small labs of the tests' own, always taken down."""

import pytest
from quick_jvm import quick
from small_labs import describe, new_id
from sparing import patient

from labbook.lab import Environment, Lab
from labbook.lab.host.host import Host
from labbook.systems.cassandra import config as cassandra_config


@pytest.fixture(scope="module")
def pair():
    """Two hosts in one site."""
    with Lab.up(describe({"h1": {}, "h2": {}}), Environment("local"), new_id()) as lab:
        yield lab


@pytest.fixture(scope="module", autouse=True)
def quick_to_start():
    """See quick_jvm and sparing. Most pages' tests have Cassandra as it is, and so do unit tests that the same process
    runs after these: by module, since a session ends with its process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cassandra_config, "jvm_options", quick(cassandra_config.jvm_options))
        patch.setattr(Host, "wait_for", patient(Host.wait_for))
        yield
