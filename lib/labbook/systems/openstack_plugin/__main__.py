"""`python -m openstack_plugin NAME MODULE:FUNCTION WORD...`: run a service's own entry under NAME.

So no script that names one Python is needed, and the service finds its words where it looks for them.
"""

import importlib
import sys

name, where = sys.argv[1:3]
sys.argv = [name, *sys.argv[3:]]
module, function = where.split(":")
sys.exit(getattr(importlib.import_module(module), function)())
