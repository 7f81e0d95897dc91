"""From settings to Cassandra's configuration and command line; its servers are in tests/lab."""

import re
from pathlib import Path, PurePosixPath
from types import SimpleNamespace

import pytest
import yaml

from labbook.errors import InputError, LabError
from labbook.systems.cassandra import nodetool
from labbook.systems.cassandra.admin_thrift import keyspace_definition
from labbook.systems.cassandra.config import VERSIONS, class_path, configuration, heap_mb
from labbook.systems.cassandra.node import Cassandra

HOME = PurePosixPath("/srv/labbook/cassandra")
PLAIN = Path(__file__).with_name("cassandra_plain.txt")
HOST = SimpleNamespace(name="server", address="198.18.0.2", root=HOME.parent,
                       limits={"memory": 3 << 30})


def node(**settings):
    return Cassandra(HOST, **settings)


def configured(**settings):
    written = configuration(node(**settings).settings, HOST.address, HOME)
    return yaml.safe_load(yaml.safe_dump(written))


@pytest.mark.parametrize("version, protocol, port_key, port", [
    ("0.7.0", "thrift", "rpc_port", 9160), ("1.0.7", "thrift", "rpc_port", 9160),
    ("5.0.8", "cql", "native_transport_port", 9042)])
def test_where_a_node_listens(version, protocol, port_key, port):
    made = configured(version=version)
    assert made["listen_address"] == made["rpc_address"] == HOST.address
    assert made[port_key] == node(version=version).port == port
    assert node(version=version).protocol == protocol


def test_defaults_start_a_node_as_ever():
    """Byte for byte as before streaming could be configured, but for JMX, which is closed:
    older measurements are of such nodes."""
    made = ""
    for version in VERSIONS:
        plain = node(version=version, token=17)
        command = plain.command().replace(" -", "\n-")
        made += f"== {version}\n{yaml.safe_dump(plain.configuration())}{command}\n"
    assert made == PLAIN.read_text()


@pytest.mark.parametrize("settings, key, value", [
    ({"version": "1.0.7", "stream_mbit": 80}, "stream_throughput_outbound_megabits_per_sec", 80),
    ({"version": "1.0.7", "stream_mbit": 0}, "stream_throughput_outbound_megabits_per_sec", 0),
    ({"version": "5.0.8", "stream_mbit": 80}, "stream_throughput_outbound", "10000000B/s"),
    ({"version": "5.0.8", "stream_mbit": 1}, "entire_sstable_stream_throughput_outbound",
     "125000B/s"),
    ({"version": "5.0.8", "whole_files": False}, "stream_entire_sstables", False),
    ({"version": "5.0.8", "disk_access": "mmap"}, "disk_access_mode", "mmap"),
])
def test_how_a_node_streams_and_reads(settings, key, value):
    assert configured(**settings)[key] == value
    assert key == "disk_access_mode" or key not in configured(version=settings["version"])


def test_the_ring_delay_and_nodetools_admission():
    command = node(version="5.0.8", ring_delay_ms=5000, nodetool=True).command().split()
    assert "-Dcassandra.ring_delay_ms=5000" in command
    assert "-Dcassandra.jmx.local.port=7199" in command
    command = node(version="1.0.7", ring_delay_ms=0, nodetool=True).command()
    assert "-Dcassandra.ring_delay_ms=0 " in command and "jmx.local" not in command


@pytest.mark.parametrize("version, port", [("0.7.0", 8080), ("1.0.7", 7199), ("5.0.8", 7199)])
def test_jmx_is_open_for_nodetool_only_and_on_loopback(version, port):
    """Whoever reaches it without a password runs any code as the node's user."""
    assert not re.search(r"-D\S*jmx|LoopbackJMX", node(version=version).command())
    opened = node(version=version, nodetool=True)
    command = opened.command()
    assert HOST.address not in command
    # the JVM's own option opens a second port on all interfaces
    assert "-Dcom.sun.management.jmxremote" not in command
    if version != "5.0.8":
        assert (f"LoopbackJMX com.sun.management.jmxremote.host=127.0.0.1,"
                f"com.sun.management.jmxremote.port={port},") in command
        assert f"jmxremote.rmi.port={port}," in command
        assert command.split()[-1] == "org.apache.cassandra.thrift.CassandraDaemon"
    assert f" -h 127.0.0.1 -p {port} ring" in nodetool.command(opened, ["ring"])
    with pytest.raises(InputError, match="does not admit nodetool"):
        node(version=version).nodetool("ring")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_node_writes_below_its_home(version):
    made = configured(version=version)
    paths = [made["commitlog_directory"], made["saved_caches_directory"],
             *made["data_file_directories"]]
    assert len(set(paths)) == 3 and all(p.startswith(f"{HOME}/") for p in paths)
    assert made["disk_access_mode"] == "standard"


@pytest.mark.parametrize("settings, expected", [
    ({}, {"commitlog_sync": "periodic", "commitlog_sync_period_in_ms": 10000}),
    ({"sync_ms": 50}, {"commitlog_sync": "periodic", "commitlog_sync_period_in_ms": 50}),
    ({"durability": "commit"},
     {"commitlog_sync": "batch", "commitlog_sync_batch_window_in_ms": 1.0}),
    ({"version": "5.0.8", "sync_ms": 50},
     {"commitlog_sync": "periodic", "commitlog_sync_period": "50ms"}),
    ({"version": "5.0.8", "durability": "commit"}, {"commitlog_sync": "batch"}),
])
def test_durability_is_the_commit_logs_sync(settings, expected):
    made = configured(**settings)
    assert {k: v for k, v in made.items() if k.startswith("commitlog_sync")} == expected


@pytest.mark.parametrize("durability", ["periodic", "commit"])
@pytest.mark.parametrize("version", VERSIONS)
def test_packages_of_a_users_host_are_those_that_the_given_settings_need(version, durability, monkeypatch):
    """What a version has instead of a missing setting was checked as if it had been given, and refused."""
    host, needed = SimpleNamespace(**vars(HOST), is_remote=True, may=lambda what: True), []
    server = Cassandra(host, version=version, durability=durability)
    monkeypatch.setattr("labbook.lab.remote.packages.provide", lambda host, needs: needed.extend(needs))
    monkeypatch.setattr(server, "run", lambda *words: None)
    server.provide()
    assert needed == list(Cassandra.needs(version=version).packages)


def test_a_token_may_be_negative_today():
    assert configured(version="5.0.8", token=-5)["initial_token"] == "-5"


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


@pytest.mark.parametrize("requested, memory, heap", [
    (None, 24_000, 512), (None, 1024, 512), (None, 600, 300), (None, 128, 64),
    (1500, 3072, 1500), (64, 128, 64),
])
def test_the_heap_fits_the_memory(requested, memory, heap):
    assert heap_mb(requested, memory) == heap


@pytest.mark.parametrize("requested, memory, heap", [
    (256, 768, 256), (None, 3072, 512), (None, 1024, 426), (None, 480, 64)])
def test_todays_heap_leaves_the_memory_needed_outside_it(requested, memory, heap):
    assert heap_mb(requested, memory, VERSIONS["5.0.8"]["beside_heap_mb"]) == heap


def test_a_heap_that_does_not_fit():
    with pytest.raises(InputError, match=r"heap_mb: 2000 does not .*3072 MB \(allowed: 64 to 1536"):
        node(heap_mb=2000)
    with pytest.raises(LabError, match="100 MB of memory are not enough.*128M"):
        heap_mb(None, 100)
    with pytest.raises(LabError, match="450 MB of memory are not enough.*480M"):
        heap_mb(None, 450, beside=384)
    with pytest.raises(InputError, match=r"64 does not fit .*450 MB \(allowed: with 480 MB and more"):
        heap_mb(64, 450, beside=384)


def test_the_command_line():
    command = node(version="1.0.7", heap_mb=256).command()
    assert command.startswith("java ")
    assert command.endswith(" org.apache.cassandra.thrift.CassandraDaemon")
    for option in ("-Xms256M", "-Xmx256M", f"-Dcassandra.config=file:{HOME}/cassandra.yaml",
                   f"@{HOME}/class_path",
                   "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED"):
        assert option in command.split()


def test_todays_command_line():
    command = node(version="5.0.8").command().split()
    assert command[-2:] == [f"@{HOME}/class_path", "org.apache.cassandra.service.CassandraDaemon"]
    for option in (f"-Dcassandra.storagedir={HOME}", f"-Dcassandra.config=file://{HOME}/cassandra.yaml",
                   f"-Djava.io.tmpdir={HOME}/tmp", "--add-opens=java.base/java.lang=ALL-UNNAMED",
                   "--add-exports=jdk.unsupported/sun.misc=ALL-UNNAMED"):
        assert option in command
    assert not [option for option in command if "{" in option or "jmx" in option.lower().split("=")[0]]


def jars(folder, *names):
    folder.mkdir()
    for name in names:
        (folder / f"{name}.jar").touch()
    return PurePosixPath("/there") / folder.name, folder


def test_the_class_path_has_each_jar_once_and_no_tools(tmp_path):
    a = jars(tmp_path / "a", "cassandra-0.7.0", "slf4j-api-1.6.1", "antlr-2.7.7", "junit-4.6")
    b = jars(tmp_path / "b", "slf4j-api-1.6.1", "log4j-1.2.16", "antlr-runtime-3.2")
    option, path = class_path([a, b]).split()
    assert option == "-cp"
    assert [re.sub("/there/[ab]/", "", jar) for jar in path.split(":")] == [
        "cassandra-0.7.0.jar", "slf4j-api-1.6.1.jar", "antlr-runtime-3.2.jar", "log4j-1.2.16.jar"]


def test_javas_agent_is_on_the_command_line(tmp_path):
    place = jars(tmp_path / "a", "cassandra-all-5.0.8", "jamm-0.4.0", "jna-5.13.0")
    assert class_path([place], "jamm-").splitlines()[0] == "-javaagent:/there/a/jamm-0.4.0.jar"
    assert "agent" not in class_path([place])


@pytest.mark.parametrize("version, partitioner", [
    ("0.7.0", "RandomPartitioner"), ("1.0.7", "RandomPartitioner"), ("5.0.8", "Murmur3Partitioner")])
def test_placement_is_the_partitioner_and_the_token_the_ranges_end(version, partitioner):
    made = configured(version=version, token=17)
    assert made["partitioner"].endswith(f".{partitioner}") and made["initial_token"] == "17"
    made = configured(version=version, placement="ordered", token="row000499")
    assert made["partitioner"].endswith(".ByteOrderedPartitioner")
    assert bytes.fromhex(made["initial_token"]) == b"row000499"


def test_compression_and_read_repair_where_the_version_has_them():
    assert keyspace_definition("1.0.7", "k", "t", 1).cf_defs[0].compression_options is None
    packed = keyspace_definition("1.0.7", "k", "t", 1, compression=True).cf_defs[0]
    assert packed.compression_options == {"sstable_compression": "DeflateCompressor"}
    repaired, = keyspace_definition("0.7.0", "k", "t", 3, read_repair=0).cf_defs
    assert repaired.read_repair_chance == 0 and repaired.compression_options is None
    assert keyspace_definition("0.7.0", "k", "t", 3).cf_defs[0].read_repair_chance is None
    with pytest.raises(InputError, match="compression: Cassandra 0.7.0 has none"):
        keyspace_definition("0.7.0", "k", "t", 1, compression=True)


def test_replication_where_the_version_has_it():
    old = keyspace_definition("0.7.0", "k", "t", 3)
    assert (old.replication_factor, old.strategy_options) == (3, None)
    new = keyspace_definition("1.0.7", "k", "t", 3)
    assert (new.replication_factor, new.strategy_options) == (None, {"replication_factor": "3"})
    assert [(c.keyspace, c.name) for c in new.cf_defs] == [("k", "t")]


@pytest.mark.parametrize("settings, message", [
    ({"version": "0.6.3"}, "version: '0.6.3' is not allowed .*0.7.0"),
    ({"token": 2**127 + 1}, "token: .*placement hash of Cassandra 0.7.0 .*integers from 0 to"),
    ({"token": -1, "version": "1.0.7"}, "token: -1 does not fit"),
    ({"token": 2**63, "version": "5.0.8"}, "token: .*Cassandra 5.0.8 .*-9223372036854775807 to"),
    ({"token": "row000499"}, "token: 'row000499' does not fit placement hash"),
    ({"placement": "ordered", "token": 5}, "token: 5 does not fit placement ordered .*a key"),
    ({"placement": "ordered"}, "token: None does not fit placement ordered .*a key"),
    ({"placement": "random"}, "placement: 'random' is not allowed .*hash, ordered"),
    ({"version": "5.0.8", "durability": "commit", "sync_ms": 5}, "sync_ms: .*at once .*periodic"),
    ({"durability": "never"}, "durability: .*periodic, commit"),
    ({"heap": 512}, "did you mean 'heap_mb'"),
    ({"stream_mbit": 80}, "stream_mbit: Cassandra 0.7.0 has no such setting"),
    ({"version": "1.0.7", "whole_files": True}, "whole_files: Cassandra 1.0.7 has no such"),
    ({"version": "1.0.7", "disk_access": "mmap"}, "disk_access: .*on Java 17 .*standard"),
    ({"disk_access": "direct"}, "disk_access: 'direct' is not allowed .*standard, mmap"),
    ({"version": "1.0.7", "stream_mbit": -1}, "stream_mbit"),
    ({"version": "5.0.8", "ring_delay_ms": 0.5}, "ring_delay_ms"),
])
def test_wrong_settings(settings, message):
    with pytest.raises(InputError, match=message):
        node(**settings)
    with pytest.raises(InputError, match=message):
        Cassandra.needs(**settings)


def test_each_version_has_its_own_needs():
    for version in VERSIONS:
        artifacts = map(str, Cassandra.needs(version=version).artifacts)
        assert f"org.apache.cassandra:cassandra-all:{version}" in artifacts
