"""The least operator that has everything of its own: name, version, settings, lock and log lines. It looks at kettles,
which are ConfigMaps with a label."""

import sys

from operator_runtime import run
from tests.integration.kettles.brewing import set_up
from tests.integration.kettles.settings import KettleSettings

if __name__ == "__main__":
    sys.exit(
        run(
            "kettle-operator",
            set_up,
            version="1.2.3",
            description="Says how many cups each kettle makes.",
            leader_election_id="a9b2e162.example.com",
            settings=KettleSettings,
        )
    )
