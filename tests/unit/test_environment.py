import pytest

from labbook.errors import InputError
from labbook.lab.environment import Environment
from labbook.paths import checkout


def test_the_local_environment_loads():
    environment = Environment.load(checkout() / "environments" / "local.yml")
    assert (environment.name, environment.provider) == ("local", "namespaces")


WRONG = {
    "no provider": ({}, "provider", "missing"),
    "unknown provider": ({"provider": "cloud"}, "provider", "namespaces"),
    "unknown key": ({"provider": "namespaces", "ranges": "x"}, "ranges", "did you mean 'range'"),
    "not a range": ({"provider": "namespaces", "range": "198.18.0.1/15"}, "range", "host bits"),
    "too small a range": ({"provider": "namespaces", "range": "198.18.0.0/24"}, "range", "/20"),
    "relative folder": ({"provider": "namespaces", "state": "var"}, "state", "absolute"),
    "not a mapping": (["provider"], "environment.yml", "object"),
}


@pytest.mark.parametrize("data, key, said", WRONG.values(), ids=WRONG)
def test_wrong_environment_files_name_file_key_and_what_is_allowed(data, key, said):
    with pytest.raises(InputError) as error:
        Environment.parse(data, file="environment.yml")
    assert "environment.yml" in str(error.value)
    assert key in str(error.value) and said in str(error.value)
