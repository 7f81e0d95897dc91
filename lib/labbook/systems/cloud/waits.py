"""Waits for what a cloud does after an API call has returned."""

import random
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

from labbook.errors import LabbookError, SystemFailure
from labbook.lab import clock
from labbook.systems.cloud.errors import NO_ROOM, no_room
from labbook.systems.cloud.model import ERROR, GONE, RUNNING

INTERVAL_S = 0.5
FAULT_S = 5     # Nova reports a failed server first and the reason later
SSH, GREETING = 22, b"SSH-"
DIAL_SECONDS, TRY_AGAIN_S = 5, 0.1
CONSOLE_LINES = 25


def until(look, done, what: str, seconds: float):
    """look()'s first answer that is done(); SystemFailure if there is none within `seconds`."""
    end = time.monotonic() + seconds
    while True:
        seen = look()
        if seen is not None and done(seen):
            return seen
        if time.monotonic() > end:
            state = getattr(seen, "state", None)
            raise SystemFailure(f"waited for {what}: not within {seconds:g} s"
                                + (f" (it is {state})" if state else ""))
        time.sleep(INTERVAL_S)


def require(thing, state: str) -> None:
    """SystemFailure if it is in another state."""
    if thing.state != state:
        raise SystemFailure(f"{thing.name} is {thing.state}, not {state}")


def running(api, servers, seconds, interval):
    """See Cloud.await_running. Polls by one API call for all servers."""
    waiting, end = {server.id: server for server in servers}, time.monotonic() + seconds
    failed = {}
    time.sleep(random.uniform(0, interval))     # else all times were read at the same few moments after the call
    while waiting:
        seen = api.servers(ids=list(waiting))
        now = clock.now()
        for one in seen:
            if one.id in waiting:
                _update(waiting[one.id], one, now)
        failed |= {k: now for k, s in waiting.items() if s.state == ERROR and k not in failed}
        waiting = {k: s for k, s in waiting.items() if not _settled(s, now - failed.get(k, now))}
        if waiting and time.monotonic() > end:
            break
        if waiting:
            time.sleep(interval)
    return servers


def _settled(server, failed_for: float) -> bool:
    known = server.fault or failed_for >= FAULT_S
    return server.state in (RUNNING, GONE) or server.state == ERROR and bool(known)


def _update(server, seen, now):
    server.state, server.fault = seen.state, seen.fault
    server.address = seen.address or server.address
    server.host = seen.host or server.host
    if seen.state == RUNNING:
        for moment, at in {**seen.moments, "running": now}.items():     # in place: it may be answering meanwhile
            server.moments.setdefault(moment, at)


def require_running(servers, console) -> None:
    failed = [server for server in servers if server.state != RUNNING]
    if not failed:
        return
    first = failed[0]
    reason = first.fault or f"it is {first.state}, and the cloud gives no reason"
    if NO_ROOM.search(first.fault or ""):
        raise no_room(f"{len(failed)} of {len(servers)} servers of {first.flavor}", reason)
    raise SystemFailure(f"{len(failed)} of {len(servers)} servers do not run; {first.name}: {reason}",
                        log=_tail(console, first))


def answers(servers, dial, seconds):
    """See Cloud.await_answers. Tries all servers in parallel."""
    with _trying(servers, dial, seconds):
        return servers


def running_and_answering(api, servers, dial, seconds, interval):
    """See Cloud.await_running_and_answers."""
    with _trying(servers, dial, seconds, wait_for_address=True):
        return running(api, servers, seconds, interval)


@contextmanager
def _trying(servers, dial, seconds, wait_for_address=False):
    """Try the servers in parallel, until each answers or the time is up; after an error in the context, no longer."""
    end, broken_off = time.monotonic() + seconds, threading.Event()
    with ThreadPoolExecutor(len(servers) or 1) as pool:
        try:
            trying = [pool.submit(_answer, server, dial or _dial, end, broken_off, wait_for_address)
                      for server in servers]
            yield
            for one in trying:
                one.result()
        finally:
            broken_off.set()


def _answer(server, dial, end, broken_off, wait_for_address):
    while ((server.address or wait_for_address) and "answers" not in server.moments
           and server.state not in (ERROR, GONE) and time.monotonic() < end and not broken_off.is_set()):
        if server.address and _greets(server.address, dial):
            server.moments["answers"] = clock.now()
        else:
            broken_off.wait(TRY_AGAIN_S)


def _greets(address, dial) -> bool:
    with suppress(OSError, EOFError, LabbookError):
        connection = dial(address, SSH, timeout=DIAL_SECONDS)
        try:
            connection.settimeout(DIAL_SECONDS)
            return connection.recv(len(GREETING)) == GREETING
        finally:
            connection.close()
    return False


def _dial(address, port, timeout):
    return socket.create_connection((address, port), timeout)


def require_answers(servers, console) -> None:
    silent = [server for server in servers if "answers" not in server.moments]
    if silent:
        first = silent[0]
        why = "never answered on ssh" if first.address else "never had an address"
        raise SystemFailure(
            f"{len(silent)} of {len(servers)} servers never came up: {first.name} is {first.state} "
            f"and {why}: does its image boot, and does the cloud let SSH in?",
            log=_tail(console, first))


def _tail(console, server) -> str | None:
    with suppress(LabbookError):    # not every cloud stores it
        return "\n".join(console(server).splitlines()[-CONSOLE_LINES:]) or None
    return None
