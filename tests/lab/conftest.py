"""Small labs of the tests' own, always taken down."""

import pytest
from small_labs import describe, new_id

from labbook.lab import Environment, Lab
from labbook.systems.cassandra import config as cassandra_config


@pytest.fixture(scope="module")
def pair():
    """Two hosts in one site."""
    with Lab.up(describe({"h1": {}, "h2": {}}), Environment("local"), new_id()) as lab:
        yield lab


@pytest.fixture(scope="module", autouse=True)
def quick_to_start():
    """Cassandra's nodes start in half of the processor's time, to be slower later: where nothing is
    measured. The pages' tests have them as they are, and so do unit tests that the same process
    runs after these: by module, since a session ends with its process."""
    as_it_is = cassandra_config.jvm_options
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cassandra_config, "jvm_options",
                      lambda *given: ["-XX:TieredStopAtLevel=1", *as_it_is(*given)])
        yield
