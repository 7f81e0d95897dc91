"""Additions to OpenStack's services on their hosts: network ports, volumes, and the start of services."""
