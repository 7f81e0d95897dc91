import pandas as pd

from labbook.papers.cms_scalability.figures import write_causes


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
