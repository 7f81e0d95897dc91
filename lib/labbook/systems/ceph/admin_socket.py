"""Asking on a host: daemons' admin sockets, and the monitor by the teller's."""

import json
import shlex
from pathlib import Path

from labbook.errors import LabError, SystemFailure

TOOLS = Path(__file__).with_name("on_host") / "ceph_tools"
SLACK_S = 10    # an SSH connection and a start of Python
NO_ANSWER = 3


def put_tools(host, home) -> None:
    """Put what runs beside the daemons below `home`."""
    host.run(f"mkdir -p {shlex.quote(str(home / TOOLS.name))}")
    for file in sorted(TOOLS.glob("*.py")):
        host.put(file, home / TOOLS.name / file.name)


def tools(host, home, *words, python=None) -> str:
    """The command line of one of the tools."""
    return shlex.join([python or host.python, "-I", "-S", str(home / TOOLS.name), *map(str, words)])


def ask(host, home, socket: str, question: dict, seconds: float = 10):
    """One answer, read as JSON; see ask_all."""
    return ask_all(host, home, socket, [question], seconds)[0]


def ask_all(host, home, socket: str, questions: list[dict], seconds: float = 10) -> list:
    """Answers, read as JSON, of the socket at that path (below the host's root if relative).

    `home` is where put_tools has put the tools. SystemFailure when nothing answers within `seconds`
    a question, or when the answer is a refusal.
    """
    words = tools(host, home, "ask", socket, seconds, *(json.dumps(each) for each in questions))
    done = host.run(words, timeout=seconds * len(questions) + SLACK_S, check=False)
    if done.exit_code == NO_ANSWER:
        raise SystemFailure(f"{host.name}: no answer to `{questions[0].get('prefix')}`: "
                            f"{done.stderr.strip()}")
    if done.exit_code:
        raise LabError(f"{host.name}: asking {socket} failed: {done.stderr.strip()[-500:]}")
    return [_read(host, question, text)
            for question, text in zip(questions, json.loads(done.stdout))]


def _named(pairs: list) -> dict:
    """An object; where it has a name several times, as lists of a client's calls do, a list of all."""
    found = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return {name: values[0] if len(values) == 1 else values for name, values in found.items()}


def _read(host, question, text):
    """An answer's JSON, or its text where it is none."""
    try:  # the monitor adds a second one to some
        found = json.JSONDecoder(object_pairs_hook=_named).raw_decode(text.lstrip())[0] if text.strip() else {}
    except ValueError:
        return text
    if isinstance(found, dict) and ("refused" in found or set(found) == {"error"}):
        raise SystemFailure(f"{host.name}: `{question.get('prefix')}` was refused: "
                            f"{found.get('why') or found.get('error') or found.get('refused')}")
    return found
