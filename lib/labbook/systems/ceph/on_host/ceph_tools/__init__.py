"""Programs that run beside a cluster's daemons: standard library, and Debian's librados."""
