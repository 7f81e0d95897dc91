"""The same on many hosts at once, and once more where a connection was lost."""

from concurrent.futures import ThreadPoolExecutor

from labbook.errors import Lost

AT_ONCE = 32


def each(items, action) -> list:
    """What `action` gives for each item. When one raises, or on Ctrl-C, all that began have ended
    before this does: nobody works on a host that is then cleaned."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        futures = [pool.submit(action, item) for item in items]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def twice(host, action):
    """What `action` gives; called again, with a new connection, when the host's was lost."""
    try:
        return action()
    except Lost:
        host.disconnect()
        return action()
