"""Where experiments run: environments, labs, hosts, links, disks. Modules load on first use."""

_HOMES = {
    "Lab": "lab", "Environment": "environment.environment", "LabDescription": "description",
    "Host": "host.host", "Result": "host.host", "Process": "host.process", "Link": "link.link",
    "Disk": "disk.disk", "io_class": "disk.io_classes",
}
__all__ = list(_HOMES)


def __getattr__(name):
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
