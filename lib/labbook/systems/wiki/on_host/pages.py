"""The wiki's pages in a store, as a mapping of names to texts."""

import itertools
import threading
from abc import abstractmethod
from collections.abc import MutableMapping

CALL_SECONDS = 10
LONGEST_BYTES = 1 << 15  # of a text, where the store itself has no limit below that


class StoreFailed(Exception):
    """The store cannot be reached, or refuses a call."""


class TooLong(ValueError):
    """A text that the store would refuse or cut."""


class StoredPages(MutableMapping):
    """Names are ASCII; texts are stored as UTF-8. Threads may use it at the same time.

    A subclass defines `_ask`, which makes a call to the store; there values are bytes.
    """

    longest_bytes = LONGEST_BYTES

    def __getitem__(self, name: str) -> str:
        value = self._ask("fetch", name)
        if value is None:
            raise KeyError(name)
        return value.decode(errors="replace")  # another program may have written it

    def __setitem__(self, name: str, text: str) -> None:
        value = text.encode()
        if len(value) > self.longest_bytes:
            raise TooLong(f"A page's text has at most {self.longest_bytes} bytes here, "
                          f"this has {len(value)}")
        self._ask("store", name, value)

    def __delitem__(self, name: str) -> None:
        self[name]
        self._ask("remove", name)

    def __iter__(self):
        """Names in the store's order; each part of them as it is when it is fetched."""
        last, names = None, True
        while names:
            names = self._ask("names_after", last)
            yield from names
            last = names[-1] if names else None

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @abstractmethod
    def _ask(self, call: str, *arguments):
        """The result of the method `call` of a connection; StoreFailed when it fails."""


class PagesByThread(StoredPages):
    """Each thread has its own connection; connections take the store's addresses in turn.

    A subclass defines `connect(address)`, which returns an object with the calls and `close()`;
    ERRORS, the exceptions of its driver; and `lost(error)`, whether the connection is broken.
    """

    ERRORS: tuple = ()

    def __init__(self, addresses: list[str], port: int, table: str, password: str = ""):
        self.port, self.table, self.password = port, table, password
        self._addresses, self._turn = addresses, itertools.count()
        self._local = threading.local()

    def _ask(self, call, *arguments):
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            try:
                return getattr(connection, call)(*arguments)
            except TimeoutError as error:  # no second try, which would double the wait
                self._fail(error)
            except self.ERRORS as error:
                if not self.lost(error):
                    raise StoreFailed(_words(error)) from error
                self._drop()  # the store was restarted, or closed an idle connection
        self._local.connection = self._connected()
        try:
            return getattr(self._local.connection, call)(*arguments)
        except self.ERRORS as error:
            self._fail(error)

    def _connected(self):
        """A connection to the next address in turn, or to the first one after it that accepts one."""
        first = next(self._turn)
        for i in range(len(self._addresses)):
            try:
                return self.connect(self._addresses[(first + i) % len(self._addresses)])
            except self.ERRORS as error:
                last = error
        raise StoreFailed(_words(last)) from last

    def _fail(self, error):
        if self.lost(error):
            self._drop()
        raise StoreFailed(_words(error)) from error

    def _drop(self):
        self._local.connection.close()
        self._local.connection = None

    def connect(self, address: str):
        raise NotImplementedError

    def lost(self, error: Exception) -> bool:
        raise NotImplementedError


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
