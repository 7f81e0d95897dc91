"""The namespaces provider: hosts are sandboxes over this machine's own root file system.

Everything but `provider` is used by the small privileged helper (`root`), imports only the
standard library, and makes or unmakes what the lab's journal names.
"""
