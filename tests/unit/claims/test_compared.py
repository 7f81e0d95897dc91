"""A claim's number says what is over what."""

import pytest

from labbook.claims import compared


@pytest.fixture(autouse=True)
def named(root):
    (root / "data/papers/demo/paper.yml").write_text(
        "names: {cassandra: Cassandra, mysql: MySQL, segments 2: two segments}\n")
    compared._names.cache_clear()
    yield
    compared._names.cache_clear()


def words(metric="mean_ms", **rule):
    return compared.words("demo", {"metric": metric, "rule": rule})


def test_a_ratio_names_its_arms_as_the_paper_does():
    assert words(name="greater", of={"store": "cassandra"}, than={"store": "mysql"}) == "Cassandra / MySQL, mean_ms"
    assert words(name="equal_within", of={"segments": 2, "clients": 1}, than={"segments": 1, "clients": 1}) \
        == "two segments / segments 1, mean_ms"
    assert words(name="greater", of={"cached": True}, than={"cached": False}) == "cached true / cached false, mean_ms"


def test_growth_slopes_exponents_and_crossings_name_the_parameter():
    arms = {"of": {"store": "cassandra"}, "than": {"store": "mysql"}, "along": "clients"}
    assert words(name="grows_alike", **arms) == "Cassandra / MySQL, growth over clients, mean_ms"
    assert words(name="grows_slower", **arms) == "Cassandra / MySQL, slope over clients, mean_ms"
    assert words(name="crosses_near", **arms) == "clients at which Cassandra / MySQL falls below 1, mean_ms"
    assert words(name="grows_with", of={"store": "mysql"}, along="clients") \
        == "MySQL, largest clients / smallest, mean_ms"
    assert words(name="proportional", along="size_mb") == "exponent of size_mb, mean_ms"


def test_a_value_alone_and_no_number_at_all():
    assert words(name="above", of={"version": "old_one"}, metric="lost") == "old one, lost"
    assert words(name="not_testable", metric=None) == ""
