"""A wiki whose pages are a mapping, as YukiWiki's are Perl's tied hash.

The CMS paper tied that hash to Cassandra, so that several web servers share the pages. Here the
mapping is in Cassandra or MySQL. `program` serves the wiki on a host.
"""
