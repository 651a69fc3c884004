"""The program: `python -m examples.my_own_shell`."""

import sys

from examples.my_own_shell import __version__
from examples.my_own_shell.controller import set_up
from operator_runtime import run

if __name__ == "__main__":
    sys.exit(
        run(
            "my-own-shell",
            set_up,
            version=__version__,
            description="Keeps pods to open a shell in, as many as each MyOwnShell specifies.",
            leader_election_id="a9b2e162.jgato.io",
        )
    )
