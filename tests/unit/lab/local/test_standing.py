"""The helper that stands by: here a program that answers with its process id, and with what it was asked."""

import os
import signal
import sys
import threading
import time

import pytest

from labbook.errors import LabError
from labbook.lab.local.standing import Standing

PROGRAM = """
import json, os, signal, sys
for line in sys.stdin:
    request = json.loads(line)
    if request["do"] == "interrupt":
        os.kill(os.getppid(), signal.SIGINT)
    if request["do"] == "die":
        sys.exit(1)
    if request["do"] == "hang":
        signal.pause()
    print(json.dumps({"pid": os.getpid(), "asked": request, "long": "x" * 200000}), flush=True)
"""


@pytest.fixture
def standing():
    helper = Standing([sys.executable, "-c", PROGRAM])
    yield helper
    helper.close()


def test_one_process_answers_one_request_after_the_other(standing):
    first, second = standing.ask({"do": "a"}, 20), standing.ask({"do": "b"}, 20)
    assert first["asked"] == {"do": "a"} and second["asked"] == {"do": "b"}
    assert first["pid"] == second["pid"]


def test_threads_get_their_own_answers(standing):
    answers = {}
    threads = [threading.Thread(target=lambda n=n: answers.update({n: standing.ask({"do": n}, 20)})) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {n: answer["asked"]["do"] for n, answer in answers.items()} == {n: n for n in range(8)}


def test_one_that_was_killed_is_replaced(standing):
    pid = standing.ask({"do": "a"}, 20)["pid"]
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert standing.ask({"do": "b"}, 20)["pid"] != pid


def test_one_that_ends_over_a_request_gives_no_answer_and_the_next_does(standing):
    assert standing.ask({"do": "die"}, 20) is None
    assert standing.ask({"do": "a"}, 20)["asked"] == {"do": "a"}


def test_a_program_that_is_not_there_gives_no_answer():
    assert Standing(["/nowhere/sudo"]).ask({"do": "a"}, 20) is None


def test_one_that_does_not_answer_in_time_is_an_error_and_ends(standing, monkeypatch):
    monkeypatch.setattr("labbook.lab.local.standing.END_SECONDS", 0.1)
    pid = standing.ask({"do": "a"}, 20)["pid"]
    with pytest.raises(LabError, match="did not answer in time"):
        standing.ask({"do": "hang"}, 0.2)
    until = time.monotonic() + 20
    while os.path.exists(f"/proc/{pid}") and time.monotonic() < until and _state(pid) != "Z":
        time.sleep(0.01)
    assert not os.path.exists(f"/proc/{pid}") or _state(pid) == "Z"


def test_an_interruption_takes_effect_after_the_answer(standing):
    with pytest.raises(KeyboardInterrupt):
        standing.ask({"do": "interrupt"}, 20)
    assert standing.ask({"do": "next"}, 20)["asked"] == {"do": "next"}    # not the answer before


def test_it_ends_with_its_pipe(standing):
    pid = standing.ask({"do": "a"}, 20)["pid"]
    standing.close()
    assert not os.path.exists(f"/proc/{pid}")


def _state(pid) -> str:
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]
