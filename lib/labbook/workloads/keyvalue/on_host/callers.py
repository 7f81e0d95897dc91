"""Clients that read and write pairs: `python -m labbook.workloads.keyvalue.on_host.callers OUT`.

With `requests` in the spec each makes that many calls in a closed loop, and with `targets` client n calls
the n-th of them, in turns of `turn_seconds` with the others; without, each calls until
the program's input is closed, at a rate where there is one (`rate_per_s`, of all clients together),
and `requests_at_most` times where that is given. With `say_seconds` the program prints so often how many
calls these have made.
A call that fails is a row with its error; so is each call of a client that cannot connect.

No NumPy here: its import would cost a small point a third of a second.
"""

import mmap
import random
import struct
import sys
import time
from array import array

from labbook.targets import DOTS, key_of
from labbook.workloads.clients.on_host.memory import Memory
from labbook.workloads.clients.on_host.runner import (
    Runner,
    cpu_seconds,
    main,
    save_part,
    say,
    sleep_until,
    until_input_closes,
)
from labbook.workloads.keyvalue import protocols
from labbook.workloads.keyvalue.wire.pairs import value_of

ROW = struct.Struct("<ddB")  # when it started, seconds it took, 0 or the number of its error's text
KINDS_OF_ERRORS, ERROR_BYTES = 8, 160  # distinct texts of a client, the last one for all others
BUFFER_BYTES = 1 << 16  # of rows, before a stream's client writes them to its file
LOOK_EVERY = 256        # calls, between two looks at the memory
NAP_NS = 200_000_000    # how long a client that is ahead of its schedule does not check for the end
LOST_SECONDS = 0.05     # pause after a lost connection: refusals come faster than anybody needs rows


class Client:
    """`number` counts over all hosts. The rows that a client draws follow from the spec's seed and
    its number, so that no two clients draw the same ones."""

    def __init__(self, spec: dict, number: int, part: str):
        self.spec, self.number, self.part, self.texts = spec, number, part, []
        self.calls, self.connected = protocols.calls(protocols.of_client(spec, number)), False
        self.call = getattr(self.calls, spec["op"])
        self.draw = random.Random(f"{spec['seed']} {number}")
        self.warmup = self.draw.choices(range(spec["rows"]), k=spec["warmup_requests"])

    def warm_up(self) -> None:
        """Connect and make the calls that are not measured, whether they succeed or not."""
        until = time.monotonic() + self.spec["seconds_at_most"]
        for row in self.warmup or [None]:
            try:
                self._reconnect() if row is None else self.once(row)
            except Exception as error:
                self.recover(error)
            if time.monotonic() > until:
                return

    def once(self, row) -> None:
        """A call by a client that may have lost its connection."""
        if not self.connected:
            self._reconnect()
        self.call(row)

    def recover(self, error) -> None:
        if not (self.connected and self.calls.keeps_connection(error)):
            self.connected = False

    def note(self, error) -> int:
        """The number, from 1, of this error's text."""
        text = f"{type(error).__name__}: {error}".encode()[:ERROR_BYTES]
        if text not in self.texts:
            if len(self.texts) == KINDS_OF_ERRORS:
                text = self.texts[-1]
            else:
                text = text if len(self.texts) < KINDS_OF_ERRORS - 1 else b"other errors"
                self.texts.append(text)
        return self.texts.index(text) + 1

    def save(self, rows: bytes | None, count: int, cpu_s: float) -> None:
        save_part(self.part, rows, client=self.number, rows=count, cpu_s=cpu_s,
                  texts=[text.decode(errors="replace") for text in self.texts])

    def _reconnect(self):
        self.calls.close()
        self.calls.connect()
        self.connected = True


class ClosedLoopClient(Client):
    """Makes `requests` calls, each as soon as the one before has its answer."""

    def __init__(self, spec: dict, number: int, part: str):
        super().__init__(spec, number, part)
        requests = spec["requests"]     # drawing them takes longer than all else before the start
        self.rows = self.draw.choices(range(spec["rows"]), k=requests) if spec["rows"] > 1 else [0] * requests
        self.warm_up()

    def measure(self, start: float) -> None:
        clock = time.perf_counter_ns
        zero = sleep_until(start)
        deadline = zero + int(self.spec["seconds_at_most"] * 1e9)
        started, took, errors = array("d"), array("d"), {}
        cpu, once, call, memory = cpu_seconds(), self.once, self.call, Memory(self.spec["clients"])
        for i, row in enumerate(self.rows):
            if not i % LOOK_EVERY:
                memory.look()
            begin = clock()
            if begin > deadline:
                break
            try:
                call(row) if self.connected else once(row)
            except Exception as error:
                errors[i] = self.note(error)
                self.recover(error)
            took.append((clock() - begin) / 1e9)
            started.append((begin - zero) / 1e9)
        self._save(started, took, errors, cpu_seconds() - cpu)

    def _save(self, started: array, took: array, errors: dict, cpu: float) -> None:
        rows = b"".join(ROW.pack(at, seconds, errors.get(i, 0))
                        for i, (at, seconds) in enumerate(zip(started, took)))
        self.save(rows, len(started), cpu)


class TurnClient(ClosedLoopClient):
    """A closed loop that rests in the turns of the others: A B, B A, A B ... A call that has begun in a turn is
    awaited beyond it."""

    def measure(self, start: float) -> None:
        clock, turn, many = time.perf_counter_ns, int(self.spec["turn_seconds"] * 1e9), self.spec["all_clients"]
        zero = sleep_until(start)
        deadline = zero + int(self.spec["seconds_at_most"] * 1e9)
        started, took, errors, cpu = array("d"), array("d"), {}, cpu_seconds()
        for i, row in enumerate(self.rows):
            while (begin := clock()) < deadline and self._rests((begin - zero) // turn, many):
                time.sleep((turn - (begin - zero) % turn) / 1e9)
            if begin > deadline:
                break
            try:
                self.once(row)
            except Exception as error:
                errors[i] = self.note(error)
                self.recover(error)
            took.append((clock() - begin) / 1e9)
            started.append((begin - zero) / 1e9)
        self._save(started, took, errors, cpu_seconds() - cpu)

    def _rests(self, turn: int, many: int) -> bool:
        round, place = divmod(turn, many)
        return self.number != (many - 1 - place if round % 2 else place)


class StreamClient(Client):
    """Calls until `stopped`. With a rate, call i of client n of N is due at (n + i N) / rate_per_s;
    a client that is late makes its next calls at once. Rows go to the client's file as they are
    made, so that their number does not matter."""

    def __init__(self, spec: dict, number: int, part: str, stopped: mmap.mmap, made: memoryview):
        """`made`: how many calls each of the host's clients has made; shared memory."""
        super().__init__(spec, number, part)
        self._stopped, self._made, self._count = stopped, made, 0
        rate = spec["rate_per_s"]
        self._every = spec["all_clients"] / rate * 1e9 if rate else 0
        self._due = number / rate * 1e9 if rate else 0
        self.warm_up()

    def measure(self, start: float) -> None:
        zero = sleep_until(start)
        cpu = cpu_seconds()
        with open(self.part, "wb", buffering=0) as file:
            self._call(zero, file)
        self.save(None, self._count, cpu_seconds() - cpu)

    def _call(self, zero: int, file) -> None:
        clock, once, call, draw = time.perf_counter_ns, self.once, self.call, self.draw.random
        rows, every, due = self.spec["rows"], self._every, zero + self._due
        deadline = zero + int(self.spec["seconds_at_most"] * 1e9)
        buffer, pack, stopped, made = bytearray(), ROW.pack, self._stopped, 0
        counts, at, most = self._made, self.number - self.spec["first_client"], self.spec.get("requests_at_most")
        memory = Memory(self.spec["clients"])
        while not stopped[0] and made != most:
            begin, error = clock(), 0
            if begin > deadline:
                break
            if every:
                if begin < due:
                    time.sleep(min(due - begin, NAP_NS) / 1e9)
                    continue
                due += every
            row = int(draw() * rows)
            try:
                call(row) if self.connected else once(row)
            except Exception as raised:
                error = self.note(raised)
                self.recover(raised)
            buffer += pack((begin - zero) / 1e9, (clock() - begin) / 1e9, error)
            counts[at] = made = made + 1
            if not made % LOOK_EVERY:
                memory.look()
            if error and not self.connected:
                time.sleep(LOST_SECONDS)
            if len(buffer) > BUFFER_BYTES:
                self._write(buffer, file)
        self._write(buffer, file)

    def _write(self, buffer: bytearray, file) -> None:
        self._count += len(buffer) // ROW.size
        left = memoryview(bytes(buffer))
        buffer.clear()
        while left:  # a full disk raises, a signal may cut a write short
            left = left[file.write(left):]


class Callers(Runner):
    """A host's clients, of either kind."""

    def __init__(self, spec: dict, out: str):
        super().__init__(spec, out)
        load_code(spec)
        self._stopped, self._closed_loop = mmap.mmap(-1, 1), "requests" in spec
        self._made = memoryview(mmap.mmap(-1, 8 * spec["clients"])).cast("q")

    def client(self, number):
        if "targets" in self.spec:
            return TurnClient(self.spec | self.spec["targets"][number], number, self.part(number))
        if self._closed_loop:
            return ClosedLoopClient(self.spec, number, self.part(number))
        return StreamClient(self.spec, number, self.part(number), self._stopped, self._made)

    def lead(self, forks) -> bool:
        if not self._closed_loop:
            while not until_input_closes(self.spec.get("say_seconds")):
                say(sum(self._made))
            self._stopped[0] = 1
        return forks.wait()


def load_code(spec: dict) -> None:
    """Load and make what all clients need once, before they are forked."""
    sys.modules.setdefault("numpy", None)  # cassandra-driver would load it, and nobody use it
    for target in spec.get("targets", [{}]):
        protocols.calls(protocols.of_client(spec | target, 0))
    value_of(key_of(0), spec["value_bytes"], spec.get("values", DOTS))


if __name__ == "__main__":
    sys.exit(main(Callers))
