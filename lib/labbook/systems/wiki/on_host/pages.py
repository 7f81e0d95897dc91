"""Pages of the wiki in a store, as a mapping of names to texts."""

import itertools
import threading
from abc import abstractmethod
from collections.abc import MutableMapping

CALL_SECONDS = 10
ABOVE_ALL_BYTES = 1 << 15  # where the store itself has no limit that matters


class StoreFailed(Exception):
    """The store cannot be reached, or refuses."""


class TooLong(ValueError):
    """A text that the store would not take, or would cut."""


class StoredPages(MutableMapping):
    """Names are ASCII, texts UTF-8 in the store. May be used by many threads at once.

    A kind of store says how it connects and what it asks over a connection; values are bytes.
    """

    longest_bytes = ABOVE_ALL_BYTES

    def __getitem__(self, name: str) -> str:
        value = self._ask("fetch", name)
        if value is None:
            raise KeyError(name)
        return value.decode(errors="replace")  # others than this wiki may have written it

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
        """Names in the store's order, as they are when that part is asked for."""
        last, names = None, True
        while names:
            names = self._ask("names_after", last)
            yield from names
            last = names[-1] if names else None

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @abstractmethod
    def _ask(self, call: str, *arguments):
        """What `call` of a connection gives; StoreFailed."""


class PagesByThread(StoredPages):
    """Each thread has its own connection, to one of the store's addresses in turn.

    A kind of store gives `connect(address)`, which gives an object with the calls and `close()`;
    ERRORS, the exceptions of its driver; and `lost(error)`: whether the connection is gone.
    """

    ERRORS: tuple = ()

    def __init__(self, addresses: list[str], port: int, table: str):
        self.port, self.table = port, table
        self._addresses, self._turn = addresses, itertools.count()
        self._kept = threading.local()

    def _ask(self, call, *arguments):
        connection = getattr(self._kept, "connection", None)
        if connection is not None:
            try:
                return getattr(connection, call)(*arguments)
            except TimeoutError as error:  # not tried again: nobody waits twice as long
                self._fail(error)
            except self.ERRORS as error:
                if not self.lost(error):
                    raise StoreFailed(_words(error)) from error
                self._drop()  # the store was started anew, or closed what was idle
        self._kept.connection = self._connected()
        try:
            return getattr(self._kept.connection, call)(*arguments)
        except self.ERRORS as error:
            self._fail(error)

    def _connected(self):
        """A connection to the first address, from the next one in turn, that takes it."""
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
        self._kept.connection.close()
        self._kept.connection = None

    def connect(self, address: str):
        raise NotImplementedError

    def lost(self, error: Exception) -> bool:
        raise NotImplementedError


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
