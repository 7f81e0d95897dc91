"""What a metadata server's crash did, in the terms of ohnishi2011's section 4. Pure.

Evidence of a run is a dict:
  survivor, fresh   what inventory.compare gave for the client that was there before the crash and
                    for one that mounted after it (None: it could not mount)
  killed            the daemon that was killed
  others_died       names of other metadata servers whose process ended, aborted or was made anew
  client_cut        ranks alive whose session with the surviving client was closed, or that cut it
                    off (blocklisted, evicted)
  migrations_failed migrations that were begun and neither completed nor rolled back when all ranks
                    were active again, or at the end, or whose failure was logged
  noticed_s         when the monitor noticed the death, seconds after it; None: it did not
  map_updated_s     when the map named the killed daemon no more in that rank; None: never
  active_s          when the rank was active again; None: never
"""

OUTCOMES = ("right", "wrong", "missing", "unobtainable")   # from good to bad
WAYS = ("other_mds_died", "client_cut", "migration_failed", "map_not_updated")


def outcome(counts: dict | None) -> str:
    """The worst thing that befell any name; "unobtainable" without counts."""
    raise NotImplementedError


def classify(evidence: dict) -> dict:
    """survivor and fresh: an outcome each; outcome: the worse; WAYS: bools; rank_unserved: whether
    nobody had the rank at the end, which is no failure of Ceph's where there was no spare;
    unexplained: not right, in none of the four ways and not for want of a spare."""
    raise NotImplementedError


def counted(runs) -> dict:
    """Of classified runs: `runs`, runs_{outcome} of each of OUTCOMES, {way}_runs of each of WAYS,
    ways_left: how many of the four were seen at all."""
    raise NotImplementedError
