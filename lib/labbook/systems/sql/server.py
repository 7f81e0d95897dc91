"""What MySQL and MariaDB share: settings, my.cnf, administration and the paper's table."""

from contextlib import contextmanager
from pathlib import PurePosixPath

from labbook.systems.base import System, memory_mb
from labbook.targets import DATABASE, MYSQL, TABLE, USER

# Read at each start; no password inside a lab.
GRANTS = f"GRANT ALL ON *.* TO '{USER}'@'%' IDENTIFIED BY '';\n"
BUFFER_POOL_MB = 128  # as both ship it
# innodb_flush_log_at_trx_commit. Periodic is 0, not 2: like Cassandra's, the answer then waits
# for no system call at all, and InnoDB writes and flushes its log once a second.
FLUSH = {"commit": 1, "periodic": 0}
# What a server is asked about itself for its facts: what a commit costs, and what caches there are.
FACTS = ("version", "innodb_flush_log_at_trx_commit", "innodb_buffer_pool_size",
         "innodb_flush_method", "innodb_log_file_size", "innodb_doublewrite", "log_bin",
         "storage_engine", "query_cache_size")


class SQLServer(System):
    """A server of MySQL's protocol; the system gives `deploy` and `command`."""

    SETTINGS = {
        "engine": {"enum": ["InnoDB", "MyISAM"], "default": "InnoDB"},
        "durability": {"enum": list(FLUSH), "default": "commit"},
        "max_connections": {"type": "integer", "minimum": 2, "maximum": 16384, "default": 300},
    }
    POOL_MB = BUFFER_POOL_MB
    port = 3306
    protocol = MYSQL

    def put_configuration(self, **own) -> None:
        """Write my.cnf and what the server reads at start. `own`: options of this system alone."""
        self.put(GRANTS, "init.sql")
        self.put_options(**{"init-file": self.home / "init.sql", **own})

    def put_options(self, more="", **own) -> None:
        """Write my.cnf; `more`: sections for programs other than the server."""
        as_root = self.run("id", "-u").stdout.strip() == "0"
        pool = min(self.POOL_MB, memory_mb(self.host) // 4)
        self.put(configuration(self.settings, self.address, self.home, buffer_pool_mb=pool,
                               as_root=as_root, **own) + more, "my.cnf")

    def answers(self) -> None:
        with self.client() as client:
            client.ping()

    def report(self) -> dict:
        found = dict(self.query("SHOW GLOBAL VARIABLES"))
        return {key: found[key] for key in FACTS}

    @contextmanager
    def client(self, database=None):
        """A connection of PyMySQL for administration: its calls cost an SSH round trip."""
        import pymysql

        connection = pymysql.connect(user=USER, database=database, defer_connect=True,
                                     autocommit=True, charset="utf8", read_timeout=30)
        connection.connect(self.channel())
        try:
            yield connection
        finally:
            connection.close()

    def query(self, statement: str, database=None) -> tuple:
        """All rows of one statement."""
        with self.client(database) as client, client.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchall()

    def create_table(self, database=DATABASE, table=TABLE) -> None:
        """Make the database with the paper's table."""
        self.query(f"CREATE DATABASE {database}")
        self.query(table_definition(table, self.settings.engine), database)


def configuration(settings, address: str, home: PurePosixPath, *, buffer_pool_mb: int,
                  as_root: bool, **own) -> str:
    """my.cnf; what is not about this lab is as the server's makers shipped it."""
    # Unasked, a server refuses to run as root; as another user it cannot be told who to be.
    options = {"user": "root"} if as_root else {}
    options |= {
        "datadir": home / "data", "tmpdir": home,
        "socket": home / "mysqld.sock", "pid-file": home / "mysqld.pid",
        "bind-address": address, "port": SQLServer.port,
        "skip-name-resolve": None,
        "max_connections": settings.max_connections,
        "default-storage-engine": settings.engine,
        "innodb_flush_log_at_trx_commit": FLUSH[settings.durability],
        "innodb_buffer_pool_size": f"{buffer_pool_mb}M",
        **own,
    }
    lines = (name if value is None else f"{name}={value}" for name, value in options.items())
    return "\n".join(["[mysqld]", *lines, ""])


def table_definition(table: str, engine: str) -> str:
    """The paper's table 1. Its LONG is MySQL's name for MEDIUMTEXT, kept."""
    return (f"CREATE TABLE {table} (NAME VARCHAR(100) UNIQUE, VALUE VARCHAR(100), TIMEUUID LONG)"
            f" ENGINE={engine}")
