"""Workloads: what drives a system and yields one row an operation.

A workload is a function on the driver. It takes a Crew (the client hosts), a target (a system, see
labbook.targets) and the load's parameters, which all come from the point. It returns an object with

- rows: a DataFrame, a row an operation, with the columns started_s (seconds since the load's start),
  seconds (duration), ok (bool) and any others, such as error and client. A failed call is a row, not
  an exception. A row with a text in the column `step` is a part of an operation.
  With service_s, the time of the call itself, `seconds` count from when the call was due.
- metrics: a dict of numbers that do not follow from the rows.

`attempt.record(load.rows, metrics=load.metrics)` computes n, errors, mean_ms, p50_ms, p95_ms, p99_ms,
max_ms, seconds and rate_per_s from the rows (times of operations that are ok), and adds the metrics.

What runs on the client hosts lies in a module of its own, in an `on_host` folder, which imports only
what hosts have: the standard library, other such modules and labbook.targets. The simplest way is one
call of a function on each host, which must end within 60 s or the call's `timeout`:

    # papers/NAME/on_host/pings.py
    import time
    import urllib.request

    def pings(url, count):
        rows = []
        for _ in range(count):
            at, began, ok = time.time(), time.monotonic(), True
            try:
                urllib.request.urlopen(url, timeout=5).read()
            except OSError:
                ok = False
            rows.append((at, time.monotonic() - began, ok))
        return rows

    # papers/NAME/load.py: each argument is a list with one item for each host
    def load(crew, target, *, count):
        url = f"http://{target.address}:{target.port}/"
        found = crew.run(pings, [url] * len(crew.hosts), [count] * len(crew.hosts), timeout=10 + 5 * count)
        rows = pd.DataFrame([row for of_host in found for row in of_host],
                            columns=["started_s", "seconds", "ok"])
        first = rows.started_s.min()    # Load: of workloads.clients.rows
        return Load(rows.assign(started_s=rows.started_s - first), metrics={}, started=first)

Many clients on a host, which start together on all hosts, are a subclass of Runner
(clients.on_host.runner) and clients.driver.Clients; keystone is the shortest example.
"""
