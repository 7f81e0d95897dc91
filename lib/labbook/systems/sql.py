"""Servers of MySQL's protocol: MySQL from the time of the CMS paper, and today's MariaDB.

MySQL is the Linux server that was shipped inside the files of a Java connector; MariaDB is Debian's
package, with a data directory of the lab's own.
"""

import secrets
import shlex
import shutil
import tarfile
import zipfile
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from labbook.errors import LabError
from labbook.lab.cache.build import build_once
from labbook.lab.cache.push import push
from labbook.systems.artifacts import Artifact, fetch, pinned
from labbook.systems.base import Needs, System, memory_mb
from labbook.targets import DATABASE, MYSQL, TABLE, USER

# A statement a line, for an init-file: one account, and no other that came with the data.
ACCOUNTS = """DELETE FROM mysql.{table} WHERE User NOT IN ('{user}', 'mariadb.sys');
DELETE FROM mysql.db;
FLUSH PRIVILEGES;
GRANT ALL ON *.* TO '{user}'@'%' IDENTIFIED BY '{password}';
"""
INIT, PASSWORD = "init.sql", "password"     # files that only the server's user can read
BUFFER_POOL_MB = 128  # the default of both
# innodb_flush_log_at_trx_commit. Periodic is 0, not 2: like Cassandra's, the answer then waits
# for no system call at all, and InnoDB writes and flushes its log once a second.
FLUSH = {"commit": 1, "periodic": 0}
# Variables in the facts: what a commit costs, and which caches there are.
FACTS = ("version", "innodb_flush_log_at_trx_commit", "innodb_buffer_pool_size",
         "innodb_flush_method", "innodb_log_file_size", "innodb_doublewrite", "log_bin",
         "storage_engine", "query_cache_size")

MYSQL_FILES = Artifact("mysql", "mysql-connector-mxj-db-files", "5.0.12")
MYSQL_VERSION, MYSQL_FOLDER = "5.5.9", "5-5-9"
PACK_SECONDS = 600
ORIGIN = "jar.sha256"   # in the unpacked server's folder: of the jar that it comes from

MARIADBD = "/usr/sbin/mariadbd"  # not in the PATH of every user
# A server in the foreground, which fills its data directory or recovers it, is ended on its host when it takes so
# long: `host.run` alone would leave it there.
BOUND_SECONDS, KILL_SECONDS = 300, 10
BOUNDED = f"timeout -k {KILL_SECONDS} {BOUND_SECONDS}"      # before its command line
RUN_SECONDS = BOUND_SECONDS + 2 * KILL_SECONDS
# What mariadb-install-db does, which another package has, except for help texts and views for
# administrators: the server itself executes the package's statements for its system tables. Their
# folder and names differ between versions.
FILL = """set -e
statements() {{
  echo 'CREATE DATABASE mysql;'; echo 'USE mysql;'
  for part in system_tables performance_tables system_tables_data; do
    cat "$(ls /usr/share/mariadb/mariadb_$part.sql /usr/share/mysql/mysql_$part.sql \
           2> /dev/null | head -n 1)" || exit 1
  done
  cat {more}
}}
statements > {home}/fill.sql
{server} --defaults-file={home}/my.cnf {options} --bootstrap \
  < {home}/fill.sql > {home}/fill.log 2>&1 || {{ tail -n 20 {home}/fill.log; exit 1; }}
rm {home}/fill.sql"""
EXECUTE = """{server} --defaults-file={home}/my.cnf {options} --bootstrap < {file} > {home}/fill.log 2>&1 || {{
  tail -n 20 {home}/fill.log; exit 1; }}"""


class SQLServer(System):
    """A server of MySQL's protocol; a subclass defines `deploy` and `command`.

    durability commit: a commit is answered once the log is on disk. periodic: at once, and the log
    is written once a second.
    """

    SETTINGS = {
        "engine": {"enum": ["InnoDB", "MyISAM"], "default": "InnoDB"},
        "durability": {"enum": list(FLUSH), "default": "commit"},
        "max_connections": {"type": "integer", "minimum": 2, "maximum": 16384, "default": 300},
    }
    POOL_MB = BUFFER_POOL_MB
    ACCOUNTS_TABLE = "global_priv"      # mysql.user is a view of it
    port = 3306
    protocol = MYSQL

    def __init__(self, host, password: str | None = None, **settings):
        """`password`: of USER; without, each `deploy` makes a new one."""
        super().__init__(host, **settings)
        self._given = self._password = password

    @property
    def password(self) -> str:
        """Of USER, who may do everything. It must not enter a record."""
        if self._password is None:  # another object has deployed the server
            self._password = self.run("cat", self.home / PASSWORD).stdout
        return self._password

    def put_configuration(self, **own) -> None:
        """Write my.cnf and the statements executed at start. `own`: options of this system only."""
        self.put_accounts()
        self.put_options(**{"init-file": self.home / INIT, **own})

    def put_accounts(self, more="") -> None:
        """Write the statements that make the accounts: ACCOUNTS, and then `more`."""
        self._password = self._given or secrets.token_urlsafe(24)
        accounts = ACCOUNTS.format(table=self.ACCOUNTS_TABLE, user=USER, password=self._password)
        self.put_secret(accounts + more, INIT)
        self.put_secret(self._password, PASSWORD)

    def put_options(self, more="", **own) -> None:
        """Write my.cnf. `more`: sections for programs other than the server."""
        as_root = self.run("id", "-u").stdout.strip() == "0"
        pool = min(self.POOL_MB, memory_mb(self.host) // 4)
        self.put_secret(configuration(self.settings, self.address, self.home, buffer_pool_mb=pool,
                                      as_root=as_root, **own) + more, "my.cnf")

    def answers(self) -> None:
        with self.client() as client:
            client.ping()

    def report(self) -> dict:
        variables = dict(self.query("SHOW GLOBAL VARIABLES"))
        return {key: variables[key] for key in FACTS}

    @contextmanager
    def client(self, database=None):
        """A PyMySQL connection for administration; each call takes an SSH round trip."""
        import pymysql

        connection = pymysql.connect(user=USER, password=self.password, database=database,
                                     defer_connect=True, autocommit=True, charset="utf8",
                                     read_timeout=30)
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
        """Create the database with the paper's table."""
        self.query(f"CREATE DATABASE {database}")
        self.query(table_definition(table, self.settings.engine), database)


class MySQL(SQLServer):
    NAME = "mysql"
    ACCOUNTS_TABLE = "user"
    SETTINGS = {"version": {"enum": [MYSQL_VERSION], "default": MYSQL_VERSION}, **SQLServer.SETTINGS}
    # The libraries that mysqld is linked with (ldd); libaio is not among them.
    NEEDS = Needs(packages=("zlib1g", "libcrypt1", "libstdc++6", "libgcc-s1", "iproute2", "procps"),
                  artifacts=(MYSQL_FILES,), commands=("ss", "ps"), built=(f"mysql-{MYSQL_VERSION}",))

    def deploy(self) -> None:
        machine = self.run("uname", "-m").stdout.strip()
        if machine != "x86_64":
            raise LabError(f"MySQL {MYSQL_VERSION} exists for x86_64 only, and {self.host.name} is {machine}")
        server = push(self.host, mysql_files())
        self.run("cp", "-r", server / "data", self.home / "data")
        self.put_configuration(basedir=server,
                               **{"lc-messages-dir": server / "share"})

    def command(self) -> str:
        server = self.run("sed", "-n", "s/^basedir=//p", self.home / "my.cnf").stdout.strip()
        return f"{server}/bin/mysqld --defaults-file={self.home}/my.cnf"


class MariaDB(SQLServer):
    """Its version is the one that Debian has; the facts report it."""

    NAME = "mariadb"
    NEEDS = Needs(packages=("mariadb-server-core", "iproute2", "procps"),
                  commands=("ss", "ps"))

    def deploy(self) -> None:
        self.run("mkdir", "-p", self.home / "data")
        self.put_configuration()
        self.host.run(fill_command(self.home), timeout=RUN_SECONDS)

    def command(self) -> str:
        return f"{MARIADBD} --defaults-file={self.home}/my.cnf"


def configuration(settings, address: str, home: PurePosixPath, *, buffer_pool_mb: int,
                  as_root: bool, **own) -> str:
    """my.cnf; everything that does not concern the lab has its default."""
    # A server refuses to run as root unless asked to; only root may say which user it runs as.
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
    """Table 1 of the CMS paper. LONG, as printed there, is MySQL's name for MEDIUMTEXT."""
    return (f"CREATE TABLE {table} (NAME VARCHAR(100) UNIQUE, VALUE VARCHAR(100), TIMEUUID LONG)"
            f" ENGINE={engine}")


def fill_command(home, options="", more="/dev/null") -> str:
    """A shell command that fills the data directory of the MariaDB whose my.cnf is in `home`, and
    executes the statements in the file `more`; to be run with RUN_SECONDS."""
    return FILL.format(home=shlex.quote(str(home)), server=f"{BOUNDED} {MARIADBD}", options=options,
                       more=shlex.quote(str(more)))


def execute_command(home, options, file) -> str:
    """A shell command that executes the statements of a file in the data directory of the stopped
    MariaDB whose my.cnf is in `home`; to be run with RUN_SECONDS."""
    return EXECUTE.format(home=shlex.quote(str(home)), server=f"{BOUNDED} {MARIADBD}", options=options,
                          file=shlex.quote(str(file)))


def mysql_files() -> Path:
    """The folder of MySQL in the cache: bin/mysqld, share/ and the empty data/ that it starts from."""
    jar = "\n".join(pinned(MYSQL_FILES).values())

    def fill(folder):
        unpack(fetch(MYSQL_FILES), folder)
        (folder / ORIGIN).write_text(jar)

    def sound(folder):
        return (folder / ORIGIN).is_file() and (folder / ORIGIN).read_text() == jar

    return build_once(MySQL.NEEDS.built[0], fill, sound)


def unpack(fetched: Path, folder: Path) -> None:
    """Unpack the server from the fetched jar, and the jars in it, into `folder`."""
    with zipfile.ZipFile(next(fetched.glob(f"{MYSQL_FILES.name}-*.jar"))) as jar:
        mysqld = folder / "bin" / "mysqld"
        mysqld.parent.mkdir()
        with jar.open(f"{MYSQL_FOLDER}/Linux-x86_64/mysqld") as packed, mysqld.open("wb") as out:
            shutil.copyfileobj(packed, out)
        mysqld.chmod(0o755)
        _unpack_inner(jar, "share_dir.jar", folder)  # holds share/
        _unpack_inner(jar, "data_dir.jar", folder / "data")
    shutil.rmtree(folder / "META-INF")
    shutil.rmtree(folder / "data" / "META-INF")


def _unpack_inner(jar: zipfile.ZipFile, name: str, folder: Path) -> None:
    with jar.open(f"{MYSQL_FOLDER}/{name}") as packed, zipfile.ZipFile(packed) as inner:
        inner.extractall(folder)


def fetch_data(host, data, folder: Path, left_out) -> None:
    """Copy the files of a stopped server, below `data` on its host, into a folder of this machine, as files of this
    process's user. left_out: names there that are not copied."""
    folder.mkdir(exist_ok=True)
    remote, local = data.parent / "data.tar.gz", folder / "data.tar.gz"
    words = ("tar", "-C", data, *(f"--exclude=./{name}" for name in left_out), "-czf", remote, ".")
    local.touch(0o600)      # it holds password hashes, and others can read the folder
    try:
        host.run(f"umask 077; {shlex.join(map(str, words))}", timeout=PACK_SECONDS)
        host.get(remote, local)
    finally:
        host.run(f"rm -f {shlex.quote(str(remote))}")
    with tarfile.open(local) as tar:
        tar.extractall(folder, filter="data")
    local.unlink()
    owners_alone(folder)


def owners_alone(folder: Path) -> Path:
    """The folder, which only its owner can read from now on; one of an earlier version others could."""
    if folder.stat().st_mode & 0o077:
        folder.chmod(0o700)
    return folder
