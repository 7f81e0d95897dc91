"""Packets of a host into a pcap file, by tcpdump on that host."""

import re
import shlex
import threading
from pathlib import Path

from labbook.atomic_files import disk_error
from labbook.errors import InputError, LabError

START_SECONDS, END_SECONDS = 20, 20
CHUNK = 1 << 16
# tcpdump ends when the channel's input does: at the latest with the connection. As root from start to end,
# since a host has no account to change to.
PROGRAM = """dev=$(ip -o -4 addr show to {address} | awk '{{ print $2; exit }}')
command -v tcpdump > /dev/null || {{ echo labbook-no-tcpdump >&2; exit 127; }}
exec 3<&0
tcpdump -i "$dev" -n -U --immediate-mode -Z root -w - {expression} & it=$!
{{ read _ <&3; kill $it; }} & reader=$!
wait $it; code=$?; kill $reader 2> /dev/null; exit $code"""
COUNTED = re.compile(r"^(\d+) packets? captured", re.M)
LISTENING = re.compile(r"listening on ([^,\s]+)")


class Capture:
    """What a host sends and receives at its data address, from `with Capture(...)` to the block's end.

    link: the other site, so that only packets to and from its hosts are taken. expression: a filter as in
    pcap-filter(7), such as "tcp port 3306". On a user's own host, whose other traffic is none of ours, only
    packets between the lab's data addresses are taken, and its `allow` must have shape.
    After the block: `packets`, their number. LabError when tcpdump is missing or ends early, or the file cannot be
    written; InputError for a filter that is none.
    """

    def __init__(self, lab, host: str, file: Path, *, link: str | None = None, expression: str = ""):
        self.host, self.file, self.packets, self.interface = lab.host(host), Path(file), None, None
        self.expression = expression_of(lab, self.host, link, expression)
        self._given, self._stderr, self._began, self._out = expression, b"", threading.Event(), None
        self._unwritten = None

    def __enter__(self):
        if not self.host.may("shape"):
            raise LabError(f"{self.host.name}: packets cannot be captured there: shape is not allowed",
                           remedy="Add shape to the host's `allow` if you agree, and bring the lab up anew")
        self._channel = self.host.open(PROGRAM.format(address=self.host.address,
                                                      expression=shlex.quote(self.expression)), root=True)
        self._threads = [threading.Thread(target=one, daemon=True) for one in (self._copy, self._listen)]
        self._threads[1].start()
        if not self._began.wait(START_SECONDS) or self.interface is None:
            self._close()
            raise self._problem()
        self._open()
        self._threads[0].start()
        return self

    def _open(self):
        """Open the file once packets are taken, so that a filter that is none leaves an earlier file as it is."""
        try:
            self._out = open(self.file, "wb", buffering=0)
        except BaseException:
            self._close()
            raise

    def __exit__(self, *_):
        self._channel.shutdown_write()
        for thread in self._threads:
            thread.join(END_SECONDS)
        found = COUNTED.search(self._messages())
        self._close()
        if self._unwritten:
            raise disk_error(self.file, self._unwritten)
        if found is None:
            raise LabError(f"{self.host.name}: tcpdump ended early: {self._messages().strip()[-500:]}")
        self.packets = int(found[1])

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for its end, `seconds` at most; whether it has ended by itself."""
        self._threads[0].join(seconds)
        return not self._threads[0].is_alive()

    def _copy(self):
        while part := self._channel.recv(CHUNK):
            try:
                while part and not self._unwritten:     # a disk that fills up takes a part of it
                    part = part[self._out.write(part):]
            except OSError as error:
                self._unwritten = error     # what follows is still taken, so that tcpdump ends

    def _listen(self):
        while part := self._channel.recv_stderr(CHUNK):
            self._stderr += part
            if found := LISTENING.search(self._messages()):
                self.interface = found[1]
                self._began.set()
        self._began.set()

    def _messages(self) -> str:
        return self._stderr.decode(errors="replace")

    def _close(self):
        self._channel.close()
        if self._out:
            self._out.close()

    def _problem(self):
        messages = self._messages()
        if "labbook-no-tcpdump" in messages:
            return LabError(f"{self.host.name} has no tcpdump", remedy="Install it: apt-get install tcpdump"
                            + (" there" if self.host.is_remote else "; local hosts have this machine's programs"))
        if self._given and ("syntax" in messages or "expression" in messages):
            return InputError(messages.strip().splitlines()[-1], key="filter",
                              allowed="an expression of pcap-filter(7)")
        return LabError(f"{self.host.name}: tcpdump did not start: {messages.strip()[-500:] or 'it said nothing'}")


def expression_of(lab, host, link: str | None, expression: str) -> str:
    """The filter for tcpdump; "" takes everything. LabError on a user's host whose peers are all on it. InputError for
    an expression that would end what stands before it."""
    depth = 0
    for letter in expression:
        depth += (letter == "(") - (letter == ")")
        if depth < 0:
            raise InputError(f"{expression!r} closes a parenthesis that it does not open", key="filter",
                             allowed="an expression of pcap-filter(7)")
    if link is not None:
        among = [other.address for other in lab.site(link)]
    else:
        among = [other.address for other in lab.hosts.values() if other is not host] if host.is_remote else []
    if host.is_remote:      # its other traffic has its address, too
        among = [one for one in among if one != host.address]
        if not among:
            raise LabError(
                f"{host.name}: the lab has hosts on this machine alone, so no packet between them is captured",
                remedy="Capture on another host")
    parts = [f"host {host.address} and ({' or '.join(f'host {one}' for one in dict.fromkeys(among))})"] * bool(among)
    return " and ".join(f"({part})" for part in [*parts, *[expression] * bool(expression.strip())])
