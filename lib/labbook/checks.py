"""Check files that users write. Errors name the file, the key and the allowed values."""

import difflib
from collections.abc import Hashable
from functools import cache
from pathlib import Path

from labbook.errors import InputError


def load_yaml(path: Path):
    """The parsed content of a YAML file.

    InputError when the file is missing, cannot be read, is not YAML, or has a key twice; it names the line.
    """
    import yaml

    try:
        return yaml.load(Path(path).read_text(), Loader=_loader())
    except FileNotFoundError:
        raise InputError("no such file", file=path) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 1}" if mark else None
        problem = getattr(error, "problem", None) or error
        raise InputError(f"invalid YAML: {problem}", file=path, key=line) from None
    except (ValueError, OSError) as error:      # a date that is none, bytes that are no UTF-8, a folder
        raise InputError(f"cannot be read: {error}", file=path) from None


def check(data, schema: dict, file: Path) -> None:
    """Check `data` against a JSON schema. InputError for the most relevant violation.

    A pattern's $ is the end of the text: other than in `re`, a line break at the end does not match.
    """
    import jsonschema

    validator = _validators()(schema)
    errors = sorted(validator.iter_errors(data), key=lambda e: (len(e.path), str(e.path)))
    if errors:
        raise _input_error(jsonschema.exceptions.best_match(errors), file)


@cache
def _validators():
    import jsonschema

    pattern = jsonschema.Draft202012Validator.VALIDATORS["pattern"]

    def of_whole_text(validator, wanted, text, schema):
        if isinstance(text, str) and text.endswith("\n"):
            yield jsonschema.ValidationError(f"{text!r} ends with a line break")
        else:
            yield from pattern(validator, wanted, text, schema)

    return jsonschema.validators.extend(jsonschema.Draft202012Validator, {"pattern": of_whole_text})


def _input_error(error, file) -> InputError:
    key = ".".join(str(part) for part in error.absolute_path) or None
    if error.validator == "additionalProperties" and isinstance(error.instance, dict):
        known = list(error.schema.get("properties", {}))
        unknown = next(k for k in error.instance if k not in known)
        return InputError("unknown key" + did_you_mean(unknown, known), file=file,
                          key=f"{key}.{unknown}" if key else unknown, allowed=known)
    if error.validator == "enum":
        return InputError(f"{error.instance!r} is not allowed", file=file, key=key,
                          allowed=error.validator_value)
    if error.validator == "required":
        missing = [k for k in error.validator_value if k not in error.instance]
        about = error.schema.get("properties", {}).get(missing[0], {}) if len(missing) == 1 else {}
        return InputError(f"missing: {', '.join(missing)}", file=file, key=key, allowed=about.get("description"))
    return InputError(_message(error), file=file, key=key, allowed=error.schema.get("description"))


def _message(error) -> str:
    if error.validator == "type":
        wanted = error.validator_value
        wanted = " or ".join(wanted) if isinstance(wanted, list) else wanted
        return f"{error.instance!r} is not of type {wanted}"
    return error.message


def did_you_mean(word, known) -> str:
    """", did you mean 'NAME'?" with the most similar of `known`, for an error; empty without one."""
    near = difflib.get_close_matches(str(word), [str(k) for k in known], n=1)
    return f", did you mean {near[0]!r}?" if near else ""


@cache
def _loader():
    """A safe YAML loader that rejects duplicate keys."""
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        pass

    def mapping(loader, node, deep=False):
        seen = set()
        for key, _ in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                raise yaml.MarkedYAMLError(problem="the key << merges nothing here; write the keys out, or quote it",
                                           problem_mark=key.start_mark)
            name = loader.construct_object(key, deep=True)
            if not isinstance(name, Hashable):
                raise yaml.MarkedYAMLError(problem="a key is a mapping or a list; text with {{ }} needs quotes",
                                           problem_mark=key.start_mark)
            if name in seen:
                raise yaml.MarkedYAMLError(problem=f"duplicate key {name!r}",
                                           problem_mark=key.start_mark)
            seen.add(name)
        return yaml.SafeLoader.construct_mapping(loader, node, deep=True)

    Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, mapping)
    return Loader
