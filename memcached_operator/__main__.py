"""`python -m memcached_operator`, and the console script."""

import sys

from memcached_operator.about import PROGRAM
from operator_runtime.process import process


def main() -> int:
    """Do what the command line says, in the process that fits; the exit code."""
    settings = process.validated_settings(PROGRAM)
    if settings is not None:
        from memcached_operator import operator

        own = (operator.__package__,)
        return process.operate(PROGRAM, settings, operator.OperatorConfig, operator.run, own_packages=own)

    from memcached_operator import cli  # not in the operator's process

    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
