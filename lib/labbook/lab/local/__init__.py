"""The namespaces provider: hosts are sandboxes over this machine's root file system.

`provider`, `access` and `standing` run in the driver. All other modules run as root in the privileged helper
(`root`), import the standard library only, and make or unmake what the lab's journal names.
"""
