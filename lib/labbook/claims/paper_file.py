"""paper.yml: a paper's bibliography, its claim in a sentence, names for figures, and its set-up beside ours."""

from pathlib import Path

from labbook.checks import check, load_yaml

TEXT = {"type": ["string", "null"]}
VALUE = {"type": ["string", "number", "boolean", "null"]}
SCHEMA = {
    "type": "object", "required": ["title"], "properties": {
        "title": {"type": "string", "minLength": 1},
        **dict.fromkeys(("translation", "affiliation", "venue", "text", "link", "doi", "claim", "claim_ja"), TEXT),
        "year": {"type": ["integer", "string", "null"]},
        "authors": {"type": ["array", "null"], "items": {
            "type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "romanised": TEXT}}},
        "names": {"type": ["object", "null"], "additionalProperties": VALUE},
        "setup": {"type": ["array", "null"], "items": {
            "type": "object", "required": ["what", "paper", "ours", "matters"],
            "properties": {"ours": {"type": "string"}}}},
    },
}


def load(file: Path) -> dict:
    """The content of a paper.yml. InputError for one that is missing or not of this shape."""
    found = load_yaml(file)
    check(found, SCHEMA, file)
    return found
