"""Bad values of points, before anything is started."""

import pytest

from labbook.errors import InputError
from labbook.study.point import Point, check_range


@pytest.mark.parametrize("value, message", [(0, "0 is too small .allowed: 1 to 9"), (10, "10 is too large"), (1, ""), (9, ""), (None, "")])
def test_a_number_out_of_its_range_is_refused_by_name(value, message):
    points = [Point("speed", {}, {"clients": value}, 1, 1, 1, 7)]
    if not message:
        return check_range(points, {"clients": 1, "other": 5}, {"clients": 9})
    with pytest.raises(InputError, match=f"speed: clients: {message}"):
        check_range(points, {"clients": 1}, {"clients": 9})
    with pytest.raises(InputError, match="1 and more"):
        check_range([Point("speed", {}, {"clients": -1}, 1, 1, 1, 7)], {"clients": 1})
