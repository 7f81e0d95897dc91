"""A node's configuration, from its settings: cassandra.yaml, JVM options, class path."""

import re
from pathlib import Path, PurePosixPath

import yaml

from labbook.errors import InputError, LabError

VERSIONS = yaml.safe_load(Path(__file__).with_name("versions.yml").read_text())
FILE = "settings of cassandra"
HEAP_MB, SMALLEST_HEAP_MB = 512, 64
DURABILITIES = ("periodic", "commit")
NO_TRACE = "-XX:-UsePerfData"  # whose files lie outside the node's folder, and would remain
LOOPBACK = "127.0.0.1"
JMX_OPENER = "LoopbackJMX"      # of on_host/LoopbackJMX.java
STAGE_SAMPLER, STAGES_FILE = "StageSampler", "stages.log"       # of on_host/StageSampler.java
PLACEMENTS = ("hash", "ordered")
DISK_ACCESS = ("standard", "mmap")
# Tools for tests, code generation and Hadoop: the old jars depend on them, the server does not.
LEFT_OUT = re.compile(r"(junit|antlr|stringtemplate|servlet-api|jline)-[0-9].*")


def check_token(version: str, placement: str, token: int | str | None) -> None:
    """InputError for a token that does not fit the placement."""
    if placement == "ordered":
        if not isinstance(token, str) or not token:
            raise InputError(f"{token!r} does not fit placement ordered", file=FILE, key="token",
                             allowed="a key, at which the node's range ends")
        return
    least, most = VERSIONS[version]["tokens"]
    if token is not None and (isinstance(token, str) or not least <= token <= most):
        raise InputError(f"{token!r} does not fit placement hash of Cassandra {version}",
                         file=FILE, key="token", allowed=f"integers from {least} to {most}")


def check_streaming(version: str, stream_mbit, whole_files, disk_access) -> None:
    """InputError for what the version cannot do, at all or on Java 17."""
    known = VERSIONS[version]
    for key, value, able in (("stream_mbit", stream_mbit, "stream_throttle" in known),
                             ("whole_files", whole_files, "whole_files" in known)):
        if value is not None and not able:
            raise InputError(f"Cassandra {version} has no such setting", file=FILE, key=key,
                             allowed="null (as shipped)")
    if disk_access == "mmap" and not known.get("mapped"):
        raise InputError(f"Cassandra {version} cannot map files on Java 17", file=FILE,
                         key="disk_access", allowed="standard")


def check_sampling(version: str, nodetool: bool, stage_samples_ms) -> None:
    """InputError where two main classes of ours would be needed."""
    if stage_samples_ms is not None and nodetool and "nodetool_opens" not in VERSIONS[version]:
        raise InputError(f"Cassandra {version} cannot be sampled while it admits nodetool", file=FILE,
                         key="stage_samples_ms", allowed="null with nodetool")


def check_read_repair(version: str, chance: float | None) -> None:
    """InputError for a chance of read repair in a version that has none."""
    if chance is not None and "read_repair" not in VERSIONS[version]:
        raise InputError(f"Cassandra {version} has no chance of read repair", file=FILE, key="read_repair",
                         allowed="null (as shipped)")


def sync_ms(version: str, durability: str, period_ms: int | None) -> int:
    """The period of syncs of the commit log, ms; InputError where each commit is synced."""
    usual = VERSIONS[version]["sync_ms"][durability]
    if period_ms is not None and usual == 0:
        raise InputError(f"Cassandra {version} syncs each commit at once", file=FILE,
                         key="sync_ms", allowed="with durability periodic")
    return period_ms or usual


def heap_mb(wanted_mb: int | None, memory: int, beside: int = 0) -> int:
    """The heap in MB: `wanted_mb`, or at most 512. It may take half of the memory; for a version that
    needs `beside` MB outside the heap, two thirds of what remains then, as its buffers need half of
    the heap's size. InputError for more, LabError where the memory does not do for any heap."""
    most, least = memory // 2, 2 * SMALLEST_HEAP_MB
    if beside:
        most = min(most, (memory - beside) * 2 // 3)
        least = beside + SMALLEST_HEAP_MB * 3 // 2
    if wanted_mb is None:
        if most < SMALLEST_HEAP_MB:
            raise LabError(f"{memory} MB of memory are not enough for Cassandra",
                           remedy=f"Give the host at least {least}M")
        return min(HEAP_MB, most)
    if wanted_mb > most:
        raise InputError(f"{wanted_mb} does not fit the host's memory of {memory} MB",
                         file=FILE, key="heap_mb", allowed=f"{SMALLEST_HEAP_MB} to {most}"
                         if most >= SMALLEST_HEAP_MB else f"with {least} MB and more")
    return wanted_mb


def configuration(settings, address: str, home: PurePosixPath) -> dict:
    """cassandra.yaml of a node; what does not concern the lab is the program's own value, which for some keys, such
    as concurrent_reads of 1.0.7 (8), is not what the file that came with it names."""
    version = VERSIONS[settings.version]
    ordered = settings.placement == "ordered"
    partitioner = "ByteOrderedPartitioner" if ordered else version["hash"]
    return {
        "cluster_name": "labbook",
        "partitioner": f"org.apache.cassandra.dht.{partitioner}",
        "initial_token": written_token(settings.token),
        "auto_bootstrap": False,
        "endpoint_snitch": "org.apache.cassandra.locator.SimpleSnitch",
        "listen_address": address, "storage_port": 7000,
        "rpc_address": address, **version["port"],
        "data_file_directories": [str(home / "data")],
        "commitlog_directory": str(home / "commitlog"),
        "saved_caches_directory": str(home / "saved_caches"),
        "disk_access_mode": settings.disk_access,
        **streaming(version, settings.stream_mbit, settings.whole_files),
        **commit_log(version["protocol"], settings.durability, settings.sync_ms),
        **seed_nodes(version["seeds"], settings.seeds or [address]),
        **({} if settings.stage_threads is None else {
            "concurrent_reads": settings.stage_threads, "concurrent_writes": settings.stage_threads}),
        **version["configuration"],
    }


def written_token(token: int | str) -> str:
    """A token for cassandra.yaml: a hash as a number, a key as its bytes in hex."""
    return token.encode().hex() if isinstance(token, str) else str(token)


def commit_log(protocol: str, durability: str, sync_ms: int) -> dict:
    """Options of the commit log: `periodic` answers before it is on disk, `commit` after."""
    if durability == "periodic":
        period = (("commitlog_sync_period", f"{sync_ms}ms") if protocol == "cql"
                  else ("commitlog_sync_period_in_ms", sync_ms))
        return {"commitlog_sync": "periodic", period[0]: period[1]}
    if protocol == "cql":  # without a window
        return {"commitlog_sync": "batch"}
    return {"commitlog_sync": "batch", "commitlog_sync_batch_window_in_ms": float(sync_ms)}


def streaming(version: dict, stream_mbit: int | None, whole_files: bool | None) -> dict:
    """Options of streaming; 0 Mbit/s is no limit, None as shipped."""
    options = {} if whole_files is None else {version["whole_files"]: whole_files}
    if stream_mbit is None:
        return options
    throttle = version["stream_throttle"]
    rate = (stream_mbit if throttle["unit"] == "megabits"
            else f"{stream_mbit * 125_000}B/s")
    return {**options, **dict.fromkeys(throttle["keys"], rate)}


def seed_nodes(form: str, seeds: list[str]) -> dict:
    if form == "list":
        return {"seeds": list(seeds)}
    return {"seed_provider": [{"class_name": "org.apache.cassandra.locator.SimpleSeedProvider",
                               "parameters": [{"seeds": ",".join(seeds)}]}]}


def properties(settings) -> dict:
    """Properties of the JVM besides those that a version always has."""
    version, properties = VERSIONS[settings.version], {}
    if settings.ring_delay_ms is not None:
        properties["cassandra.ring_delay_ms"] = settings.ring_delay_ms
    if settings.nodetool and "nodetool_opens" in version:
        properties[version["nodetool_opens"]] = version["nodetool"]["port"]
    return properties


def main_arguments(settings, home: PurePosixPath) -> list[str]:
    """The main class and its arguments. JMX, by which nodetool works, lets whoever reaches it run
    any code: it is open only where nodetool is admitted, and only to the node's own host."""
    version = VERSIONS[settings.version]
    if settings.stage_samples_ms is not None:
        return [STAGE_SAMPLER, str(home / STAGES_FILE), str(settings.stage_samples_ms), version["main"]]
    if not settings.nodetool or "nodetool_opens" in version:
        return [version["main"]]
    port = version["nodetool"]["port"]
    options = {"host": LOOPBACK, "port": port, "rmi.port": port, "ssl": "false",
               "authenticate": "false"}
    return ["--add-opens=jdk.management.agent/jdk.internal.agent=ALL-UNNAMED",
            f"-Djava.rmi.server.hostname={LOOPBACK}", JMX_OPENER,
            ",".join(f"com.sun.management.jmxremote.{key}={value}" for key, value in options.items()),
            version["main"]]


def jvm_options(settings, address: str, home: PurePosixPath, more: dict) -> list[str]:
    """The same garbage collector for all versions, so that it makes no difference between them.
    `more`: properties of the JVM; one that is None is left out."""
    version, heap = VERSIONS[settings.version], settings.heap_mb
    values = {"java.net.preferIPv4Stack": "true", "cassandra-foreground": "yes",
             "java.io.tmpdir": f"{home}/tmp", "jna.tmpdir": f"{home}/tmp",
             **version["properties"], **more}
    return ["-ea", f"-Xms{heap}M", f"-Xmx{heap}M", "-Xss512k", "-XX:+UseSerialGC",
            "-XX:+ExitOnOutOfMemoryError", NO_TRACE, *module_options(version),
            *defined(values, address, home)]


def module_options(version: dict) -> list[str]:
    """Options that open packages of Java 17 to the version."""
    return [*(f"--add-opens={package}=ALL-UNNAMED" for package in version["opened"]),
            *(f"--add-exports={package}=ALL-UNNAMED" for package in version["exported"])]


def defined(values: dict, address: str, home: PurePosixPath) -> list[str]:
    """Properties as options of Java."""
    return [f"-D{key}={str(value).format(home=home, address=address)}"
            for key, value in values.items() if value is not None]


def class_path(folders: list[tuple[PurePosixPath, Path]], agent: str | None = None,
               classes: tuple = ()) -> str:
    """Java's options for the jars, of each name one. `folders`: pairs of a folder on the host and
    the same folder here. `agent`: how the name of the jar begins that is Java's agent. `classes`:
    folders of single classes on the host."""
    jars = {jar.name: str(place / jar.name) for place, here in folders
            for jar in sorted(here.glob("*.jar")) if not LEFT_OUT.fullmatch(jar.name)}
    agents = [f"-javaagent:{path}" for name, path in jars.items() if agent and name.startswith(agent)]
    return "\n".join([*agents, "-cp " + ":".join([*map(str, classes), *jars.values()])])
