"""JSON schema of an environment file with `provider: ssh`; programs are those of every provider."""

from labbook.lab.environment import clouds

ROLE = r"^[a-z][a-z0-9-]{0,11}$"
SITE = ROLE
FILE = r"^[~/]"

# Permissions: what a lab may do on a host outside its root folder.
ALLOW = {
    "packages": "install Debian packages (sudo apt-get)",
    "software": "copy jars, servers' files, Python packages and the library below root",
    "limits": "control groups for cores, quota and memory (sudo)",
    "shape": "delay and cut links by rules of the host's own network (sudo)",
    "disk": "a disk of its own: a file below root on a loop device, which a daemon serves if it is modelled (sudo)",
    "trace": "record the requests of a disk of its own by the kernel's tracing (sudo)",
    "fuse": "mount file systems of programs below root (sudo)",
}

_LOGIN = {
    "address": {"type": "string", "pattern": r"^[A-Za-z0-9][A-Za-z0-9._:-]*$",
                "description": "where SSH goes: an IP address or a name, without user and port"},
    "port": {"type": "integer", "minimum": 1, "maximum": 65535, "description": "1 to 65535"},
    "user": {"type": "string", "pattern": r"^[A-Za-z_][A-Za-z0-9_.-]*$",
             "description": "a login name"},
    "key": {"type": "string", "pattern": FILE,
            "description": "a private key's file: an absolute path, or one that begins with ~/"},
    "known_hosts": {"type": "string", "pattern": FILE, "description":
                    "a file of known host keys: an absolute path, or one that begins with ~/"},
    "jump": {"type": ["string", "null"],
             "description": "an entry of jumps, another host, or null for none"},
}
_PLACE = {
    "root": {"type": "string", "pattern": r"^/[A-Za-z0-9._/-]+$", "maxLength": 64, "description":
             "an absolute path of letters, digits and . _ - /, at most 64 characters"},
    "python": {"type": "string", "pattern": r"^[A-Za-z0-9/][A-Za-z0-9._/+-]*$",
               "description": "a command such as python3, or an absolute path"},
    "site": {"type": "string", "pattern": SITE,
             "description": "a-z, 0-9 and -, at most 12 characters"},
    "shared_address": {"type": "boolean", "description": "true or false"},
    "allow": {"type": "array", "items": {"enum": list(ALLOW)}, "uniqueItems": True},
}
# A value at the top of the file is the default of all hosts.
DEFAULTS = {**{k: v for k, v in _LOGIN.items() if k != "address"}, **_PLACE}

# What a user has built: each by its folder, benchmarks by the same on all machines that run them.
PROGRAM_PATH = {"type": "string", "pattern": "^/", "description": "an absolute path"}
PROGRAMS = {"type": "object", "additionalProperties": False,
          "properties": {
              "unixbench": {**PROGRAM_PATH, "description": "the folder with UnixBench's Run, an absolute path"},
              "npb": {**PROGRAM_PATH, "description": "the folder with NPB's MPI programs (bin), an absolute "
                                             "path"}}}
# On this machine a lab's own cloud takes a kernel, too: systems/openstack/own_kernel.py.
LOCAL_PROGRAMS = {**PROGRAMS, "properties": {**PROGRAMS["properties"], "kernel": {
    **PROGRAM_PATH, "description": "the folder with a kernel that boots under this machine's KVM, an absolute path"}}}

HOST = {
    "type": "object", "additionalProperties": False, "required": ["address", "roles"],
    "properties": {
        **_LOGIN, **_PLACE,
        "data": {"type": "string", "description": "an IPv4 address of the host's own"},
        "roles": {"type": "array", "minItems": 1, "uniqueItems": True,
                  "items": {"type": "string", "pattern": ROLE},
                  "description": "one or more of the roles in studies' lab.yml"},
    },
}
JUMP = {"type": "object", "additionalProperties": False, "required": ["address"],
        "properties": _LOGIN}
SCHEMA = {
    "type": "object", "additionalProperties": False, "required": ["provider", "hosts"],
    "properties": {
        "provider": {"const": "ssh"},
        **DEFAULTS,
        "hosts": {"type": "object", "minProperties": 1, "additionalProperties": HOST,
                  "description": "name: {address, roles, ...}, one or more"},
        "jumps": {"type": "object", "additionalProperties": JUMP},
        "clouds": clouds.SCHEMA,
        "programs": PROGRAMS,
    },
}
