"""What cells glue into a notebook's text: `{glue:text}` roles and `{glue}` blocks, and the values they stand for."""

import re

from labbook.pipeline.sources import notebooks

_ROLE = re.compile(r"\{glue(?::[a-z]+)?\}`([^`<]*<)?(?P<name>[^`>:]+)(?::[^`>]*)?>?`")
_BLOCK = re.compile(r"^(?P<fence>`{3,})\{glue(?::[a-z]+)?\} *(?P<name>\S+)\n(?:.*\n)*?(?P=fence) *$", re.MULTILINE)
_RECORD = "application/papermill.record/"       # before the kind of what is not shown where it is made
_QUOTED = re.compile(r"^(['\"])(.*)\1$", re.DOTALL)


def outputs(cells: list[dict]) -> dict[str, tuple[dict, dict]]:
    """{name: (output, its cell)} of all that is glued."""
    return {output["metadata"]["scrapbook"]["name"]: (output, cell) for cell in cells
            for output in cell.get("outputs", []) if is_record(output)}


def is_record(output: dict) -> bool:
    return "scrapbook" in output.get("metadata", {})


def blocks(source: str) -> list[str]:
    """Names of what the blocks of a text stand for, in order."""
    return [found["name"] for found in _BLOCK.finditer(source)]


def replaced(source: str, role, block) -> str:
    """The text with role(name, itself) and block(name, itself) in the place of each role and each block."""
    for pattern, made in ((_ROLE, role), (_BLOCK, block)):
        source = pattern.sub(lambda found, made=made: made(found["name"].strip(), found[0]), source)
    return source


def data(output: dict) -> dict[str, str]:
    """{kind: text} of what is glued."""
    return {kind.replace(_RECORD, ""): notebooks.joined(value) for kind, value in output.get("data", {}).items()}


def words(output: dict) -> str:
    """What is glued as text; a string is without its quotes."""
    return _QUOTED.sub(r"\2", data(output).get("text/plain", ""))
