"""Equal servers as one target."""


class Fleet:
    """Clients spread over the servers' addresses: the first calls the first, and round again."""

    def __init__(self, servers):
        self.servers = list(servers)

    @property
    def address(self) -> str:
        return self.servers[0].address

    @property
    def addresses(self) -> list[str]:
        return [server.address for server in self.servers]

    @property
    def port(self) -> int:
        return self.servers[0].port

    @property
    def protocol(self) -> str:
        return self.servers[0].protocol

    @property
    def processes(self) -> list:
        return [server.process for server in self.servers]

    def facts(self) -> dict:
        """The first server's, and each one's memory."""
        found = [server.facts() for server in self.servers]
        return {**found[0], "servers": len(found), "resident_mb": [f["resident_mb"] for f in found]}

    def destroy(self) -> None:
        for server in reversed(self.servers):
            server.destroy()
