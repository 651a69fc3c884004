"""`python -m memcached_operator`."""

import sys

from memcached_operator.cli import main

if __name__ == "__main__":
    sys.exit(main())
