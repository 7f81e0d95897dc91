"""Tables of calls of clients in closed loops."""

import pandas as pd


def calls(clients=90, of_client=40, seconds=0.01, hosts=("c1",), slow=None, slow_s=10.0):
    """Closed loops; call `slow` (client, number) takes `slow_s`."""
    found = []
    for client in range(clients):
        at = 0.0
        for number in range(of_client):
            took = slow_s if (client, number) == slow else seconds
            found.append((client, hosts[client * len(hosts) // clients], at, took, True))
            at += took
    rows = pd.DataFrame(found, columns=["client", "host", "started_s", "seconds", "ok"])
    return rows.astype({"host": pd.CategoricalDtype(hosts)})
