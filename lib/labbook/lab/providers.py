"""Who makes labs: the namespaces of this machine, or hosts of the user's own over SSH.

A provider has NAME; folders(), open_state(), state_folder() of what it keeps on this machine; up(),
limit(), down() of a lab; and host() for what it made.
"""

from labbook.lab.local import provider as namespaces
from labbook.lab.remote import provider as ssh

ALL = (namespaces, ssh)


def of(environment):
    return next(provider for provider in ALL if provider.NAME == environment.provider)


def holding(lab_id: str):
    """The one in whose place the lab's state folder lies; the first when there is none."""
    return next((p for p in ALL if p.state_folder(lab_id).is_dir()), ALL[0])
