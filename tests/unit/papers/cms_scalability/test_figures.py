import pandas as pd

from labbook.papers.cms_scalability.figures import left_for, write_causes


def test_each_cause_of_slow_writes_is_a_ratio_with_all_else_alike():
    causes = {"store": {"mysql": 2, "cassandra": 1}, "durability": {"commit": 3, "periodic": 1},
              "rows": {1: 5, 1000: 1}, "op": {"write": 7, "update": 1, "insert": 2}}
    points = pd.DataFrame([
        dict(store=store, durability=durability, rows=rows, op=op, repeat=1,
             mean_ms=a * b * c * d)
        for store, a in causes["store"].items() for durability, b in causes["durability"].items()
        for rows, c in causes["rows"].items() for op, d in causes["op"].items()])
    table = write_causes(points, few=1, many=1000)
    assert [cells[1].split()[0] for cells in table.rows] == [
        "7.00", "3.50", "3.50", "5.00", "5.00", "3.00", "3.00", "2.00", "2.00", "2.00"]


def test_the_large_server_leaves_the_clients_less_of_their_core():
    """The ceiling was drawn whole beside points that were judged by what is left of it."""
    ceiling = pd.DataFrame({"clients": [1, 70], "rate_per_s": [100.0, 1000.0]})
    shares = {"small": 0.15, "large": 0.3}
    assert left_for(ceiling, 2, shares).rate_per_s.tolist() == [70.0, 700.0]
    assert left_for(ceiling, 1, shares).rate_per_s.tolist() == [100.0, 1000.0]
    assert not len(left_for(pd.DataFrame(), 2, shares))
