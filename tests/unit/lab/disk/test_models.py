"""Models of disks: their arithmetic beside sums by hand, their files' errors, the daemon's settings."""

import random
from math import sqrt

import pytest
import yaml

from labbook.errors import InputError
from labbook.lab.disk import modelled, models
from labbook.lab.disk.models import Model, find

KB, GIB = 1 << 10, 1 << 30
DISK = Model("d", overhead_ms=0.25, mb_per_s=100, rpm=6000, track_ms=1, stroke_ms=17)    # a turn: 10 ms, 1 MB


def test_a_request_that_begins_where_the_last_one_ended_is_overhead_and_transfer():
    found = DISK.serve(5_000_000, 100_000, 5_000_000, 3.0, GIB)
    assert found == {"seek_ms": 0, "rotation_ms": 0, "ended_ms": pytest.approx(3 + 0.25 + 1)}


def test_a_seek_and_the_rotation_from_the_angle_at_its_end():
    """A quarter of the disk: 1 + 16 * 1/2 = 9 ms. At 0.75 + 0.25 + 9 = 10 ms the disk has turned once; the
    sector is 300 kB after the beginning of its track: 3 ms."""
    found = DISK.serve(2_300_000, 200_000, 2_300_000 + GIB // 4, 0.75, GIB)
    assert found["seek_ms"] == pytest.approx(9)
    assert found["rotation_ms"] == pytest.approx(3)
    assert found["ended_ms"] == pytest.approx(0.75 + 0.25 + 9 + 3 + 2)


def test_a_sector_that_has_just_passed_takes_nearly_a_turn():
    assert DISK.rotation_ms(0, 0.001) == pytest.approx(9.999)
    assert DISK.rotation_ms(999_999, 9.99999) == pytest.approx(0, abs=1e-4)


def test_a_disk_that_is_part_of_a_larger_one_has_short_seeks():
    part = Model("p", overhead_ms=0, mb_per_s=100, rpm=6000, track_ms=1, stroke_ms=17, span_gb=150)
    assert part.seek_ms(10**9, GIB) == pytest.approx(1 + 16 * sqrt(1 / 150))
    assert DISK.seek_ms(GIB, GIB) == pytest.approx(17)


def test_a_model_without_turns_neither_seeks_nor_waits():
    ssd = find("ssd_2010")
    assert ssd.seek_ms(GIB, GIB) == ssd.rotation_ms(12345, 3) == 0
    assert ssd.random_ms(4096, GIB, GIB) == ssd.sequential_ms(4096)


def test_a_fixed_time_is_on_top_of_each_request_that_begins_elsewhere():
    volume = find("network_volume")
    assert volume.sequential_ms(50_000) == pytest.approx(0.2 + 1)
    assert volume.random_ms(50_000, GIB, GIB) == pytest.approx(0.2 + 1 + 7)


@pytest.mark.parametrize("name", [name for name, model in models.models().items() if model.rpm])
def test_the_mean_of_random_requests_is_that_of_many_served_ones(name):
    model, draw, head, at, size, within = find(name), random.Random(1), 0, 0.0, 128 * KB, GIB
    times = []
    for _ in range(20_000):
        place = draw.randrange(within // size) * size
        ended = model.serve(place, size, head, at, 2 * GIB)["ended_ms"]
        times.append(ended - at)
        head, at = place + size, ended + draw.random() * 10     # whoever asks thinks meanwhile
    assert sum(times) / len(times) == pytest.approx(model.random_ms(size, within, 2 * GIB), rel=0.02)


def test_seeks_of_the_report_s_disk_come_as_often_as_the_report_says():
    assert 1000 / find("hdd_82_seeks").random_ms(8 * KB, GIB, GIB) == pytest.approx(82, rel=0.02)
    assert 3 * 1000 / find("network_volume").random_ms(8 * KB, GIB, GIB) == pytest.approx(405, rel=0.02)


def test_every_figure_has_a_source():
    for name, entry in models.described().items():
        assert entry["is"]
        for key, figure in entry.items():
            assert key == "is" or figure["source"], (name, key)


@pytest.mark.parametrize("change, message", [
    ({"rmp": {"value": 1, "source": "typed"}}, "hdd_2010.rmp.*rpm"),
    ({"rpm": {"value": 7200}}, "hdd_2010.rpm.*source"),
    ({"channels": {"value": 65, "source": "many"}}, "hdd_2010.channels.value.*1 to 64"),
    ({"mb_per_s": {"value": 0, "source": "broken"}}, "hdd_2010.mb_per_s.value.*above 0"),
    ({"order": {"value": "cfq", "source": "of 2010"}}, "hdd_2010.order.value.*fcfs, elevator"),
])
def test_a_wrong_model_names_its_file_key_and_what_is_allowed(change, message, tmp_path, monkeypatch):
    file = tmp_path / "models.yml"
    file.write_text(yaml.safe_dump({"hdd_2010": models.described()["hdd_2010"] | change}))
    monkeypatch.setattr(models, "FILE", file)
    with pytest.raises(InputError, match=f"(?s)models.yml.*{message}"):
        models.described.__wrapped__()


def test_an_unknown_model_is_reported_with_those_that_there_are():
    with pytest.raises(InputError, match="lab.yml.*did you mean.*hdd_2010.*ssd_2010"):
        find("hdd_2011", "lab.yml", "hosts.db.limits.disk.model")


def test_the_daemon_gets_the_figures_in_its_units():
    disk = {"model": "hdd_2010", "order": "fcfs", "figures": find("hdd_150gb").figures()}
    assert modelled.settings(disk, GIB) == {
        "size": GIB, "order": "fcfs", "channels": 1, "bytes_per_s": 100_000_000, "turn_ns": 8_333_333,
        "span": 150 * 10**9, "overhead_ns": 200_000, "after_ns": 0, "track_ns": 800_000, "stroke_ns": 16_000_000}


def test_what_the_compiler_lacks_is_named(tmp_path):
    with pytest.raises(OSError, match="cannot be compiled.*no_such.h.*apt-get install gcc libc6-dev libfuse3-dev"):
        modelled.build(tmp_path, "#include <no_such.h>\n")
    assert not list(tmp_path.iterdir())


def test_a_program_is_compiled_once(tmp_path):
    first = modelled.build(tmp_path, "int main(void) { return 0; }\n")
    made = first.stat().st_ino
    assert modelled.build(tmp_path, "int main(void) { return 0; }\n").stat().st_ino == made
    assert modelled.build(tmp_path, "int main(void) { return 1; }\n") != first
