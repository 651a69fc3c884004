"""Load by django-elastipymemcache, which follows an endpoint, until standard input ends; each line is a failure."""

import sys
import threading

from django.conf import settings
from django_elastipymemcache.client import AWSElastiCacheClient


def main(endpoint: str) -> None:
    """Stay until standard input ends."""
    settings.configure()
    client = AWSElastiCacheClient(endpoint, discovery_interval=1.0, timeout=5.0, connect_timeout=5.0, no_delay=True)
    waiting = threading.Thread(target=sys.stdin.read, daemon=True)
    waiting.start()
    while waiting.is_alive():
        for number in range(100):
            try:
                client.set(f"key-{number}", b"value")
                client.get(f"key-{number}")
            except Exception as error:
                print(repr(error), flush=True)
        waiting.join(0.02)


if __name__ == "__main__":
    main(sys.argv[1])
