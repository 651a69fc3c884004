"""The wire: the Kubernetes API over aiohttp. Nothing here knows of operators."""
