"""Made-up results of two stores, for tests of figures and tables."""

import pandas as pd
import pytest

from labbook import figures


@pytest.fixture(autouse=True)
def names(tmp_path):
    paper = tmp_path / "names.yml"
    paper.write_text("title: a\nnames: {cassandra: Cassandra, mysql: MySQL, read: Read, write: Write}\n")
    figures.use_names(paper)


def store_summary(counts=(1, 10), repeat_times=(1.0, 2.0, 4.0), limited=()):
    """Mean times rise with the clients; `limited` holds (store, clients) that clients limited."""
    return pd.DataFrame([
        dict(store=store, op=op, clients=count, repeat=i, mean_ms=time * count * slow,
             rate_per_s=1000 / (time * slow), client_limited=float((store, count) in limited))
        for store, slow in (("cassandra", 2.0), ("mysql", 1.0)) for op in ("read", "write")
        for count in counts for i, time in enumerate(repeat_times, 1)])
