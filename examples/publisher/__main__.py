"""The program: `python -m examples.publisher`."""

import sys

from examples.publisher import __version__
from examples.publisher.controller import set_up
from examples.publisher.settings import Settings
from operator_runtime import run

if __name__ == "__main__":
    sys.exit(
        run(
            "publisher",
            set_up,
            version=__version__,
            description="Publishes the files of a folder as ConfigMaps, in the namespaces that a Publication chooses.",
            settings=Settings,
        )
    )
