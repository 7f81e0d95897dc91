"""How `make lab` runs JupyterLab: for this machine alone, with the checkout, in which make works, as its
folder, and without asking anybody about news, updates or extensions."""

import os
from pathlib import Path

c = get_config()  # noqa: F821 (JupyterLab's)
c.ServerApp.ip = "127.0.0.1"
c.ServerApp.root_dir = os.getcwd()
c.ServerApp.allow_root = os.geteuid() == 0      # labs need root, or sudo
c.LabApp.default_url = "/lab/tree/notebooks"
c.LabApp.news_url = None
c.LabApp.check_for_updates_class = "jupyterlab.NeverCheckForUpdate"
c.LabApp.extension_manager = "readonly"
c.LabApp.extra_labextensions_path = [str(Path(__file__).parent / "labextensions")]     # numbers in the text
c.KernelManager.shutdown_wait_time = 120.0      # seconds, at most, for a kernel to take its lab down
