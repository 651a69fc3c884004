"""MyOwnShell: the operator of the guide "My first operator", on this project's runtime."""

__version__ = "0.1.0"
