"""The book's pages beside the notebooks', and its build."""
