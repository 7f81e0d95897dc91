"""Answers clients with next to no work: the rate that clients reach with it is their own ceiling.

`python -m null_server PROTOCOL ADDRESS PORT VALUE_BYTES [dots|random]`

It imports the standard library only. Of a message it reads no more than the key and, in Cassandra's
protocols, where messages may be long or come many at once, its length. The value is the key, cut or
padded with dots, or followed by noise. Keystone's clients always get the same user and the same list
of users.

Each protocol is a module with `answers(value_of)`: the bytes sent to a client that has connected, and
the function from a message to its answer; `value_of(key)` gives the value of a key. Where messages
may be cut or joined, `size_of(received)` gives the length of the first one, or None when too little
has been received to know it.
"""
