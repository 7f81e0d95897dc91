"""Questions to a daemon's admin socket, or to the monitor's proxy, by a program on the host."""

import json
import shlex
from pathlib import Path

from labbook.errors import LabError, SystemFailure

TOOLS = Path(__file__).with_name("on_host") / "ceph_tools"
SLACK_S = 10    # for an SSH connection and the start of Python
NO_ANSWER = 3


class Refused(SystemFailure):
    """The daemon answered, and refused."""


def put_tools(host, home) -> None:
    """Copy the programs that run beside the daemons to `home`."""
    host.run(f"mkdir -p {shlex.quote(str(home / TOOLS.name))}")
    for file in sorted(TOOLS.glob("*.py")):
        host.put(file, home / TOOLS.name / file.name)


def tools(host, home, *arguments, python=None) -> str:
    """The command line of one of these programs."""
    return shlex.join([python or host.python, "-I", "-S", str(home / TOOLS.name), *map(str, arguments)])


def ask(host, home, socket: str, question: dict, seconds: float = 10):
    """One answer; see ask_all."""
    return ask_all(host, home, socket, [question], seconds)[0]


def ask_all(host, home, socket: str, questions: list[dict], seconds: float = 10) -> list:
    """The parsed JSON answers of the socket at this path (relative to the host's root folder).

    `home`: the folder given to put_tools. SystemFailure if the socket does not answer within
    `seconds` a question, Refused if it refuses one; LabError if the program fails.
    """
    command = tools(host, home, "ask", socket, seconds, *(json.dumps(each) for each in questions))
    done = host.run(command, timeout=seconds * len(questions) + SLACK_S, check=False)
    if done.exit_code == NO_ANSWER:
        raise SystemFailure(f"{host.name}: no answer to `{questions[0].get('prefix')}`: "
                            f"{done.stderr.strip()}")
    if done.exit_code:
        raise LabError(f"{host.name}: the query of {socket} failed: {done.stderr.strip()[-500:]}")
    return [_parse(host, question, text)
            for question, text in zip(questions, json.loads(done.stdout))]


def _collect_duplicates(pairs: list) -> dict:
    """A JSON object; values of a repeated name (as in a client's list of requests) become a list."""
    found = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return {name: values[0] if len(values) == 1 else values for name, values in found.items()}


def _parse(host, question, text):
    """The JSON value of an answer, or its text if it is not JSON."""
    decoder = json.JSONDecoder(object_pairs_hook=_collect_duplicates)
    try:  # the monitor appends a second value to some answers
        found = decoder.raw_decode(text.lstrip())[0] if text.strip() else {}
    except ValueError:
        return text
    if isinstance(found, dict) and ("refused" in found or set(found) == {"error"}):
        raise Refused(f"{host.name}: `{question.get('prefix')}` was refused: "
                      f"{found.get('why') or found.get('error') or found.get('refused')}")
    return found
