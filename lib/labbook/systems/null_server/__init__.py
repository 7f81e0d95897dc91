"""Answers clients with next to no work: their rate against it is their own ceiling.

`python -m null_server PROTOCOL ADDRESS PORT VALUE_BYTES`

It needs nothing but Python, answers what comes with one read (the clients wait for each answer)
and never looks at more than the key. The value is the key, cut or padded with dots. Keystone's
clients get the same user, and the same list of users, at all times.
"""
