"""MariaDB of today: the server of Debian's package, with a data directory of the lab's own."""

import shlex

from labbook.systems.base import Needs
from labbook.systems.sql.server import SQLServer

SERVER = "/usr/sbin/mariadbd"  # not in the path of everybody who logs in
# What mariadb-install-db does, which is another package's but for a part, and without the help
# texts and the views for administrators: the server itself runs the package's own statements for
# the tables that it cannot be without. Their folder and names have changed over the versions.
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


class MariaDB(SQLServer):
    """Its version is Debian's; the facts say which."""

    NAME = "mariadb"
    NEEDS = Needs(packages=("mariadb-server-core", "iproute2", "procps"),
                  commands=("ss", "ps"))

    def deploy(self) -> None:
        self.run("mkdir", "-p", self.home / "data")
        self.put_configuration()
        self.host.run(fill(self.home))

    def command(self) -> str:
        return f"{SERVER} --defaults-file={self.home}/my.cnf"


def fill(home, options="", more="/dev/null") -> str:
    """Shell words that fill the data directory of the server whose my.cnf is in `home`; the file
    `more` has further statements."""
    return FILL.format(home=shlex.quote(str(home)), server=SERVER, options=options,
                       more=shlex.quote(str(more)))
