"""A claim's number says what is over what."""

import pytest

from labbook.claims import compared


@pytest.fixture(autouse=True)
def named(root):
    (root / "data/papers/demo/paper.yml").write_text(
        "title: a\nnames: {cassandra: Cassandra, mysql: MySQL, segments 2: two segments}\n")
    compared._names.cache_clear()
    yield
    compared._names.cache_clear()


def words(metric="mean_ms", **rule):
    return compared.words("demo", {"metric": metric, "rule": rule})


def test_a_ratio_names_its_arms_as_the_paper_does():
    assert words(name="greater", of={"store": "cassandra"}, than={"store": "mysql"}) == "Cassandra / MySQL, mean time (ms)"
    assert words(name="equal_within", of={"segments": 2, "clients": 1}, than={"segments": 1, "clients": 1}) \
        == "two segments / segments 1, mean time (ms)"
    assert words(name="greater", of={"rtt_ms": 500, "send_window": 4}, than={"rtt_ms": 100, "send_window": 2}) \
        == "round trip 500 ms and send window 4 / round trip 100 ms and send window 2, mean time (ms)"
    assert words(name="greater", of={"cached": True}, than={"cached": False}) == "cached true / cached false, mean time (ms)"


def test_a_name_may_be_a_number_or_a_truth_value(root):
    """As YAML reads 2022 and yes; every verdict ended with a TypeError."""
    (root / "data/papers/demo/paper.yml").write_text("title: a\nnames: {release zed: 2022, cached true: yes}\n")
    compared._names.cache_clear()
    assert words(name="greater", of={"release": "zed"}, than={"release": "yoga"}) == "2022 / yoga, mean time (ms)"
    assert words(name="greater", of={"cached": True}, than={"cached": False}).startswith("True / cached false")


def test_growth_slopes_exponents_and_crossings_name_the_parameter():
    arms = {"of": {"store": "cassandra"}, "than": {"store": "mysql"}, "along": "clients"}
    assert words(name="grows_alike", **arms) == "Cassandra / MySQL, growth over clients, mean time (ms)"
    assert words(name="grows_slower", **arms) == "Cassandra / MySQL, slope over clients, mean time (ms)"
    assert words(name="crosses_near", **arms) == "clients at which Cassandra / MySQL falls below 1, mean time (ms)"
    assert words(name="grows_with", of={"store": "mysql"}, along="clients") \
        == "MySQL, largest clients / smallest, mean time (ms)"
    assert words(name="proportional", along="size_mb") == "exponent of size (MB), mean time (ms)"


def test_a_value_alone_and_no_number_at_all():
    assert words(name="above", of={"version": "old_one"}, metric="lost") == "old one, lost"
    assert words(name="not_testable", metric=None) == ""


@pytest.mark.parametrize("name, text", [
    ("mean_ms", "mean time (ms)"), ("stream_mb_per_s", "stream (MB a second)"),
    ("random_delete_per_s", "random delete a second"), ("kept", "kept"), ("server_cpu_us_per_call", "server CPU (µs a call)"),
    ("put_c_kib_per_cpu", "put c (KB a percent of CPU)"), ("moving_s", "moving (s)"), ("s", "s"), ("", "")])
def test_names_of_metrics_are_written_with_their_units(name, text):
    assert compared.plain(name) == text
