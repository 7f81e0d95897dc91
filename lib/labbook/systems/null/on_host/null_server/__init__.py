"""Answers clients with next to no work: their rate against it is their own ceiling.

`python -m null_server PROTOCOL ADDRESS PORT VALUE_BYTES [dots|random]`

It needs nothing but Python and never looks at more than the key and, of Cassandra's protocols,
whose messages may be long or many at once, how much there is. The value is the key, cut or padded
with dots, or followed by noise. Keystone's clients get the same user, and the same list of users,
at all times.
"""
