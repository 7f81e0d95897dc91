"""Packages from an index are the pinned ones, or none: a folder stands in for an index, with real pip and uv."""

import base64
import hashlib
import platform
import sys
import zipfile

import pytest

from labbook.errors import LabError
from labbook.lab.python_packages import PythonPackages
from labbook.lab.remote import wheels

PYTHON = "{}.{}".format(*sys.version_info)


def wheel(folder, name, version="1.0"):
    """Write a wheel of one module; returns its path and the line that pins it."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    files = {f"{name}.py": "VALUE = 7\n",
             f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
             f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    with zipfile.ZipFile(path, "w") as packed:
        for each, text in files.items():
            packed.writestr(each, text)
        digests = {each: base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
                   for each, text in files.items()}
        packed.writestr(f"{info}/RECORD", "".join(f"{each},sha256={digest},\n" for each, digest in digests.items())
                        + f"{info}/RECORD,,\n")
    return path, f"{name}=={version} --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"


@pytest.fixture(params=["uv", "pip"])
def index(request, tmp_path, monkeypatch):
    """A folder as the only index, as a user of this tool would set it."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("LABBOOK_CACHE", str(tmp_path / "cache"))
    for name in ("UV_CACHE_DIR", "PIP_CACHE_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    for tool in ("PIP", "UV"):
        monkeypatch.setenv(f"{tool}_FIND_LINKS", str(folder))
    monkeypatch.delenv("PIP_INDEX_URL", raising=False)
    monkeypatch.setenv("UV_NO_INDEX" if request.param == "uv" else "PIP_NO_INDEX", "1")
    ran = []
    complaint_of = wheels._complaint_of
    monkeypatch.setattr(wheels, "_complaint_of", lambda command: (ran.append(command), complaint_of(command))[1])
    yield folder
    assert ran and ran[0][0].endswith("/uv") == (request.param == "uv"), "the tool that the user has set up"


def packages(tmp_path, *lines):
    (tmp_path / "tool.txt").write_text("# pins\n" + "".join(lines))
    return PythonPackages("tool", "1.0", ("tool==1.0",), tmp_path / "tool.txt")


def test_what_is_pinned_is_taken_from_the_index_that_the_user_has_set(index, tmp_path):
    lines = [wheel(index, name)[1] for name in ("tool", "helper")]
    folder = packages(tmp_path, *lines).fetch()
    assert {"tool.py", "helper.py"} <= {file.name for file in folder.iterdir()}


def test_a_wheel_with_one_other_byte_is_named_and_nothing_of_it_stays(index, tmp_path):
    lines = [wheel(index, name)[1] for name in ("tool", "helper")]
    whole = (index / "helper-1.0-py3-none-any.whl").read_bytes()
    (index / "helper-1.0-py3-none-any.whl").write_bytes(whole.replace(b"VALUE = 7", b"VALUE = 8"))
    made = packages(tmp_path, *lines)
    with pytest.raises(LabError, match="not the pinned one(.|\n)*helper") as error:
        made.fetch()
    assert "tool.txt has the hashes" in error.value.remedy
    artifacts = tmp_path / "cache" / "artifacts"
    assert not (artifacts / made.folder).exists() and not any((artifacts / ".drafts").iterdir())

    (index / "helper-1.0-py3-none-any.whl").write_bytes(whole)
    assert (made.fetch() / "helper.py").read_text() == "VALUE = 7\n"


def test_a_package_without_a_hash_is_refused(index, tmp_path):
    wheel(index, "tool")
    with pytest.raises(LabError, match="(?i)hash"):
        packages(tmp_path, "tool==1.0\n").fetch()


def test_no_file_of_pins_names_an_index_and_all_have_hashes():
    from packaging.requirements import Requirement

    root = wheels.HOST_PINS.parents[4]
    files = [root / name for name in ("constraints.txt", "constraints-test.txt", "lib/bootstrap.txt")]
    versions = {}
    for file in [*files, *(root / "lib/labbook").rglob("*.txt")]:
        pins = file.read_text().replace("\\\n", "")
        assert "://" not in pins, file
        for line in filter(lambda line: not line.startswith("#"), pins.splitlines()):
            specifier_text, *hashes = line.split("--hash=sha256:")
            assert hashes and all(len(each.strip()) == 64 for each in hashes), f"{file}: {line}"
            requirement = Requirement(specifier_text)
            if file in files or file == wheels.HOST_PINS:
                versions.setdefault(requirement.name, set()).add(str(requirement.specifier))
    assert {name for name, found in versions.items() if len(found) > 1} == set()
    assert {name for name in wheels.PACKAGES} <= versions.keys()


def test_the_machine_s_own_processor_is_one_that_pins_are_made_for():
    assert platform.machine() in wheels.MACHINES
