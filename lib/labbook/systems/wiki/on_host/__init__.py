"""A wiki whose pages lie behind a mapping, as YukiWiki's lie behind Perl's tied hash.

The CMS paper tied that hash to Cassandra, so that several web servers share the pages; here the
mapping is tied to Cassandra or to MySQL. `program` runs it on a host.
"""
