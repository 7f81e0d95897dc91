"""One execution of a notebook: its kernel, its progress, its page."""
