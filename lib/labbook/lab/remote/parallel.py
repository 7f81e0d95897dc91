"""Run an action on many hosts in parallel, and retry it once after a lost connection."""

from concurrent.futures import ThreadPoolExecutor

from labbook.errors import Lost

AT_ONCE = 32


def each(items, action, stop=None) -> list:
    """`action(item)` of all items, in parallel; a list of the results.

    When one raises, or on Ctrl-C, `stop(item)` is called for all items. Returns or raises only after
    all actions have ended, so that nothing still works on a host that is then cleaned.
    """
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
    """`action()`; once more, over a new connection, when the connection to the host was lost and
    `stopped()` is false."""
    try:
        return action()
    except Lost:
        host.disconnect()
        if stopped():
            raise
        return action()
