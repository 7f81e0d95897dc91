"""The same on many hosts at once, and once more where a connection was lost."""

from concurrent.futures import ThreadPoolExecutor

from labbook.errors import Lost

AT_ONCE = 32


def each(items, action, stop=None) -> list:
    """What `action` gives for each item. When one raises, or on Ctrl-C, `stop` is called for all, and
    those that began have ended before this does: nobody works on a host that is then cleaned."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        futures = [pool.submit(action, item) for item in items]
        try:
            return [future.result() for future in futures]
        except BaseException:
            for future in futures:
                future.cancel()
            for item in items if stop else ():
                stop(item)
            raise


def twice(host, action, stopped=lambda: False):
    """What `action` gives; called again, with a new connection, when the host's was lost and nobody
    has said that this is to be left."""
    try:
        return action()
    except Lost:
        host.disconnect()
        if stopped():
            raise
        return action()
