"""The log of a modelled disk: every request that it served, as a DataFrame."""

ENTRY = [("arrived_ns", "<u8"), ("started_ns", "<u8"), ("ended_ns", "<u8"), ("replied_ns", "<u8"),
         ("place", "<u8"), ("size", "<u4"), ("seek_ns", "<u4"), ("rotation_ns", "<u4"), ("pid", "<u4"),
         ("waiting", "<u2"), ("write", "u1"), ("failed", "u1"), ("number", "<u4")]
BYTES = 64          # of an entry: struct entry in on_host/modelled_disk/model.c
COLUMNS = ("number", "t_s", "place", "size_bytes", "write", "wait_ms", "seek_ms", "rotation_ms", "service_ms",
           "late_ms", "waiting", "failed", "pid")


def frame(log: bytes, offset_s: float = 0.0, after: int = 0):
    """Parse the log: a DataFrame of the requests numbered `after` and above, one row each, as served.

    number (from 0 since the lab came up), t_s (arrival: the daemon's clock + offset_s), place (bytes from
    the disk's beginning), size_bytes, write, wait_ms (from arrival to start), seek_ms, rotation_ms,
    service_ms (from start to end by the model, seek and rotation included; without a fixed time after),
    late_ms (from that end to the reply; includes a fixed time), waiting (requests among which it was
    chosen), failed (an error was the reply), pid (of whom FUSE names: above a loop device one of the
    kernel's workers). Flushes and discards are left out.
    """
    import numpy as np
    import pandas as pd

    whole = np.frombuffer(log[:len(log) // BYTES * BYTES], np.dtype(ENTRY))
    found = whole[np.argsort(whole["number"], kind="stable")]
    found = found[found["number"] >= after]

    def ms(later, earlier):
        return (found[later].astype(np.int64) - found[earlier].astype(np.int64)) / 1e6

    return pd.DataFrame({
        "number": found["number"].astype(np.int64), "t_s": found["arrived_ns"] / 1e9 + offset_s,
        "place": found["place"].astype(np.int64), "size_bytes": found["size"].astype(np.int64),
        "write": found["write"].astype(bool), "wait_ms": ms("started_ns", "arrived_ns"),
        "seek_ms": found["seek_ns"] / 1e6, "rotation_ms": found["rotation_ns"] / 1e6,
        "service_ms": ms("ended_ns", "started_ns"), "late_ms": ms("replied_ns", "ended_ns"),
        "waiting": found["waiting"].astype(np.int64), "failed": found["failed"].astype(bool),
        "pid": found["pid"].astype(np.int64)}, columns=list(COLUMNS))
