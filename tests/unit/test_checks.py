"""Files that users write are checked by their schemas."""

import pytest

from labbook.checks import check, load_yaml
from labbook.claims.schema import SCHEMA as CLAIMS
from labbook.errors import InputError
from labbook.lab.description import SCHEMA as LAB
from labbook.lab.environment.schema import HOST


@pytest.mark.parametrize("data, schema, key", [
    ({"sites": ["lan\n"], "hosts": {"a": {"site": "lan", "role": "db"}}}, LAB, "sites.0"),
    ({"sites": ["lan"], "hosts": {"a": {"site": "lan", "role": "db\n"}}}, LAB, "hosts.a.role"),
    ({"address": "10.0.0.1\n"}, HOST, "address"),
    ([{"id": "faster\n"}], CLAIMS, "0.id"),
])
def test_a_name_does_not_end_with_a_line_break(data, schema, key, tmp_path):
    only = {name: one for name, one in schema.items() if name != "required"}
    if only.get("items"):
        only["items"] = {"properties": only["items"]["properties"]}
    with pytest.raises(InputError, match="ends with a line break") as refused:
        check(data, only, tmp_path / "file.yml")
    assert refused.value.key == key


def test_text_with_a_line_break_is_allowed_where_no_pattern_is_asked(tmp_path):
    check({"statement": "two\nlines\n"}, {"properties": {"statement": {"type": "string"}}}, tmp_path)
    check({"name": "lan"}, {"properties": {"name": {"pattern": "^[a-z]+$"}}}, tmp_path)
    with pytest.raises(InputError, match="does not match"):
        check({"name": "lan\nwan"}, {"properties": {"name": {"pattern": "^[a-z]+$"}}}, tmp_path)


@pytest.mark.parametrize("data, message", [
    (b"address: {{ host }}", "line 1.*needs quotes"), (b"day: 2024-13-45", "cannot be read: month"),
    (b"name: caf\xe9", "cannot be read: .*utf-8"), (None, "cannot be read: .*directory")])
def test_what_is_no_yaml_is_named_with_its_file(data, message, tmp_path):
    file = tmp_path / "file.yml"
    file.mkdir() if data is None else file.write_bytes(data)
    with pytest.raises(InputError, match=message) as refused:
        load_yaml(file)
    assert refused.value.file == file
