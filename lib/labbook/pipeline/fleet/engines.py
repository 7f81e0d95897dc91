"""The engines of a fleet: which machine has one, and calls to it that do not wait.

An engine that is there says who it is; of several on one machine one is used, and another when that is gone.
"""

import time

from labbook.errors import LabError
from labbook.pipeline.fleet import on_machine

CONNECT_SECONDS = 60


class Gone:
    """In place of a call to an engine that is not there any more: it has failed."""

    def ready(self) -> bool:
        return True

    def get(self, timeout=None):
        raise ConnectionError("the engine has gone")


class Engines:
    """`client`: ipyparallel's. Not for several threads."""

    def __init__(self, client):
        self.client = client
        self._known = {}        # engine -> who() of it, or the call that asks
        self._unreachable = set()

    def look(self) -> dict[str, dict]:
        """{machine: who() of its engine} of those that are there now."""
        there = set(self.client.ids)
        self._known = {engine: known for engine, known in self._known.items() if engine in there}
        for engine in there - set(self._known):
            self._known[engine] = self.call(engine, on_machine.who)
        for engine, known in self._known.items():
            if not isinstance(known, dict) and known.ready():
                self._known[engine] = _answer(known) or {}
        found = {}
        for engine in sorted(engine for engine, known in self._known.items() if isinstance(known, dict) and known):
            found[self._name(self._known[engine])] = self._known[engine] | {"engine": engine}     # the newest
        return found

    @staticmethod
    def _name(who: dict) -> str:
        return who["name"] or f"{who['host']}-{who['id'][:4]}"

    def call(self, engine: int, function, *arguments):
        """Begin a call: something with ready() and get(). To an engine that has gone it has failed already."""
        from ipyparallel.error import NoEnginesRegistered

        try:
            return self.client[engine].apply_async(function, *arguments)
        except (IndexError, NoEnginesRegistered):
            return Gone()

    def close(self) -> None:
        self.client.close(linger=0)


def _answer(call):
    try:
        return call.get(timeout=0)
    except Exception:       # an engine without labbook, or one that died: it is no machine of ours
        return None


class Profile(Engines):
    """The engines of a cluster that is running already, by the name of its profile, whatever launched it."""

    def __init__(self, profile: str):
        import ipyparallel

        try:
            client = ipyparallel.Client(profile=profile, timeout=CONNECT_SECONDS)
        except (OSError, ipyparallel.error.TimeoutError) as error:
            raise LabError(f"the cluster {profile!r} cannot be reached: {error}", remedy=(
                f"Start it: IPP_ENABLE_CURVE=1 ipcluster start --profile={profile}; "
                "the book's page Many machines has examples")) from None
        super().__init__(client)

    @property
    def is_encrypted(self) -> bool:
        return bool(getattr(self.client, "curve_serverkey", None))

    def wait(self, seconds: float = CONNECT_SECONDS) -> None:
        """Until there is a first engine; LabError without one."""
        until = time.monotonic() + seconds
        while not self.look():
            if time.monotonic() > until:
                raise LabError("the cluster has no engine that knows labbook", remedy=(
                    "Its engines run the Python of a checkout's .venv, with the same code as this one"))
            time.sleep(0.1)
