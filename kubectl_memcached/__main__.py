"""`python -m kubectl_memcached`."""

import sys

from kubectl_memcached.cli import main

if __name__ == "__main__":
    sys.exit(main())
