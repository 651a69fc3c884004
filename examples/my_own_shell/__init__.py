"""MyOwnShell: the operator of the guide "My first operator", on this project's runtime."""
