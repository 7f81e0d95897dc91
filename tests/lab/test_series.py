"""What the hosts of a lab did while a point was measured is recorded with it."""

import pytest
from test_kill import tiny  # noqa: F401 (a fixture)

from labbook.study.records.record import Records


@pytest.mark.timeout(300)
def test_a_point_has_series_of_its_hosts(tiny):  # noqa: F811
    assert tiny.start().wait() == 0, (tiny.root / "stderr").read_text()
    folder, = {path.parent for path in tiny.root.glob("data/records/*/tiny/tiny/*.parquet")}
    records = Records(folder)
    assert len(records.keys()) == 4
    for key in records.keys():
        assert set(records.meta(key)["series"]) == {"hosts"} and len(records.rows(key)) == 3
        frame = records.series(key, "hosts")
        assert {"h1", "h2", "router-a", "router-b", "(machine)"} == set(frame.host)
        h1 = frame[frame.host == "h1"]
        assert (h1.cpu_cores * h1.seconds).sum() > 0 and (h1.user_cores + h1.system_cores).max() > 0
        assert (h1.written_bytes_per_s * h1.seconds).sum() > 2 << 20, "it wrote its files to its disk"
        assert h1.memory_bytes.max() > 0 and (h1.rx_bytes_per_s_ctl0.max() > 0)
        assert frame[frame.host == "(machine)"].cpu_cores.max() > 0
    assert tiny.left_over() == []
