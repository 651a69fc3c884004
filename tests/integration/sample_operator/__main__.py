"""The least operator that has everything of its own: name, version, settings, lock and log lines. It looks at samples,
which are ConfigMaps with a label."""

import sys

from operator_runtime import run
from tests.integration.sample_operator.controller import set_up
from tests.integration.sample_operator.settings import SampleSettings

if __name__ == "__main__":
    sys.exit(
        run(
            "sample-operator",
            set_up,
            version="1.2.3",
            description="Says how many parts each sample has.",
            leader_election_id="a9b2e162.example.com",
            settings=SampleSettings,
        )
    )
