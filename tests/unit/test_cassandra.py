"""From settings to Cassandra's configuration and command line; its servers are in tests/lab."""

import re
from pathlib import PurePosixPath
from types import SimpleNamespace

import pytest
import yaml

from labbook.errors import InputError, LabError
from labbook.systems import cassandra
from labbook.systems.cassandra import VERSIONS, Cassandra, class_path, configuration, heap_mb

HOME = PurePosixPath("/srv/labbook/cassandra")
HOST = SimpleNamespace(name="server", address="198.18.0.2", root=HOME.parent,
                       limits={"memory": 3 << 30})


def node(**settings):
    return Cassandra(HOST, **settings)


def configured(**settings):
    written = configuration(node(**settings).settings, HOST.address, HOME)
    return yaml.safe_load(yaml.safe_dump(written))


def test_a_node_listens_on_the_data_network_and_writes_below_its_home():
    made = configured()
    assert made["listen_address"] == made["rpc_address"] == HOST.address
    assert made["rpc_port"] == Cassandra.port == 9160
    paths = [made["commitlog_directory"], made["saved_caches_directory"],
             *made["data_file_directories"]]
    assert len(set(paths)) == 3 and all(p.startswith(f"{HOME}/") for p in paths)
    assert made["disk_access_mode"] == "standard"


@pytest.mark.parametrize("settings, expected", [
    ({}, {"commitlog_sync": "periodic", "commitlog_sync_period_in_ms": 10000}),
    ({"sync_ms": 50}, {"commitlog_sync": "periodic", "commitlog_sync_period_in_ms": 50}),
    ({"durability": "commit"},
     {"commitlog_sync": "batch", "commitlog_sync_batch_window_in_ms": 1.0}),
])
def test_durability_is_the_commit_logs_sync(settings, expected):
    made = configured(**settings)
    assert {k: v for k, v in made.items() if k.startswith("commitlog_sync")} == expected


@pytest.mark.parametrize("version", VERSIONS)
def test_seeds_in_the_form_of_the_version(version):
    seeds = ["198.18.0.2", "198.18.0.3"]
    made = configured(version=version, seeds=seeds, token=5)
    assert made["initial_token"] == "5"
    if version == "0.7.0":
        assert made["seeds"] == seeds and "seed_provider" not in made
    else:
        assert made["seed_provider"][0]["parameters"] == [{"seeds": ",".join(seeds)}]


def test_a_node_alone_is_its_own_seed():
    assert configured()["seeds"] == [HOST.address]


@pytest.mark.parametrize("asked, memory, heap", [
    (None, 24_000, 512), (None, 1024, 512), (None, 600, 300), (None, 128, 64),
    (1500, 3072, 1500), (64, 128, 64),
])
def test_the_heap_fits_the_memory(asked, memory, heap):
    assert heap_mb(asked, memory) == heap


def test_a_heap_that_does_not_fit():
    with pytest.raises(InputError, match=r"heap_mb: 2000 does not .*3072 MB \(allowed: 64 to 1536"):
        node(heap_mb=2000)
    with pytest.raises(LabError, match="100 MB of memory are too few.*128M"):
        heap_mb(None, 100)


def test_the_command_line():
    command = node(version="1.0.7", heap_mb=256).command()
    assert command.startswith("java ")
    assert command.endswith(" org.apache.cassandra.thrift.CassandraDaemon")
    for option in ("-Xms256M", "-Xmx256M", f"-Dcassandra.config=file:{HOME}/cassandra.yaml",
                   "-Djava.rmi.server.hostname=198.18.0.2", f"@{HOME}/class_path",
                   "-Dcom.sun.management.jmxremote.port=7199",
                   "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED"):
        assert option in command.split()
    assert "-Dcom.sun.management.jmxremote.port=8080" in node(version="0.7.0").command()


def test_the_class_path_has_each_jar_once_and_no_tools(tmp_path):
    for folder, jars in {"a": ["cassandra-0.7.0", "slf4j-api-1.6.1", "antlr-2.7.7", "junit-4.6"],
                         "b": ["slf4j-api-1.6.1", "log4j-1.2.16", "antlr-runtime-3.2"]}.items():
        (tmp_path / folder).mkdir()
        for jar in jars:
            (tmp_path / folder / f"{jar}.jar").touch()
    places = [(PurePosixPath("/there") / f, tmp_path / f) for f in "ab"]
    names = [re.sub("/there/[ab]/", "", jar) for jar in class_path(places).split(":")]
    assert names == ["cassandra-0.7.0.jar", "slf4j-api-1.6.1.jar", "antlr-runtime-3.2.jar",
                     "log4j-1.2.16.jar"]


def test_replication_where_the_version_has_it():
    old = cassandra.keyspace_definition("0.7.0", "k", "t", 3)
    assert (old.replication_factor, old.strategy_options) == (3, None)
    new = cassandra.keyspace_definition("1.0.7", "k", "t", 3)
    assert (new.replication_factor, new.strategy_options) == (None, {"replication_factor": "3"})
    assert [(c.keyspace, c.name) for c in new.cf_defs] == [("k", "t")]


@pytest.mark.parametrize("settings, told", [
    ({"version": "0.6.3"}, "version: '0.6.3' is not allowed .*0.7.0"),
    ({"token": 2**127 + 1}, "token"),
    ({"durability": "never"}, "durability: .*periodic, commit"),
    ({"heap": 512}, "did you mean 'heap_mb'"),
])
def test_wrong_settings(settings, told):
    with pytest.raises(InputError, match=told):
        node(**settings)
    with pytest.raises(InputError, match=told):
        Cassandra.needs(**settings)


def test_needs_are_the_versions_own():
    for version in VERSIONS:
        artifacts = map(str, Cassandra.needs(version=version).artifacts)
        assert f"org.apache.cassandra:cassandra-all:{version}" in artifacts
