"""The publisher: files of a folder beside it become ConfigMaps in the namespaces that a Publication chooses."""

__version__ = "0.1.0"
