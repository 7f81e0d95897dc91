"""`python .../service.py NAME MODULE:FUNCTION WORD...`: run a service's own entry under NAME.

So no script that names one Python is needed, and the service finds its words where it looks for them.
A file, not `-m`: os-vif calls its tables of iptables after what was started.
"""

import importlib
import sys

if __name__ == "__main__":
    sys.path.pop(0)     # this folder, whose names are no modules of their own
    name, where = sys.argv[1:3]
    sys.argv = [name, *sys.argv[3:]]
    module, function = where.split(":")
    sys.exit(getattr(importlib.import_module(module), function)())
