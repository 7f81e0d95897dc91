"""What an error says of itself."""

import re

from labbook import errors, paths


def test_an_error_of_our_own_is_printed_without_its_class():
    assert errors.in_words("LabError", "no host") == "no host"
    assert errors.in_words("KernelDied", "it ended") == "it ended"
    assert errors.in_words("ZeroDivisionError", "division by zero") == "ZeroDivisionError: division by zero"


def test_all_classes_of_errors_are_known_by_name():
    """Of a notebook's error only the name of its class reaches the command line."""
    derived = r"^class (\w+)\((?:LabbookError|InputError|LabError|Lost|SystemFailure|Stopped)\)"
    found = {name for file in (paths.checkout() / "lib/labbook").rglob("*.py")
             for name in re.findall(derived, file.read_text(), re.M)}
    assert "InputError" in found and found <= errors.OWN
