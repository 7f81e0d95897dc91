"""The platform's database server."""

from labbook.systems.sql.mariadb import MariaDB


class Database(MariaDB):
    """The platform's; its data may be a copy of one that was stopped."""

    def deploy(self, data=None) -> None:
        """`data`: the path on the host of a data directory."""
        if data is None:
            super().deploy()
            return
        self.run("mkdir", "-p", self.home / "data")
        self.put_configuration()
        self.run("cp", "-r", "--reflink=auto", f"{data}/.", self.home / "data", timeout=300)

    def put_configuration(self, **own) -> None:
        super().put_configuration(**own, **{
            "bind-address": "0.0.0.0", "performance_schema": "OFF", "innodb_log_file_size": "48M"})
