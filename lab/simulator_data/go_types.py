"""Go types of the kinds that the simulator serves: `python -m lab.simulator_data.go_types SCHEMAS FILE`.

The kinds are those of the schemas that `schemas.py` wrote down; what they are made of, `messages/main.go` of the module
`kubernetes` finds in the Go types of the Kubernetes that the lab runs. The same version gives the same bytes.
"""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lab.programs.go import find_go, go_version
from lab.programs.kubernetes import MODULE_DIR
from lab.simulator_data.schemas import pack

Json = dict[str, Any]

# The body of a deletion: every group and version has this one.
_DELETE_OPTIONS = "v1/DeleteOptions"


def kinds(schemas: Json) -> list[str]:
    """`apiVersion/kind` of all that may be sent to a server that serves what these schemas are of."""
    served = set()
    for each in schemas["resources"]:
        group, version = each["group"], each["version"]
        if "version" in each["entry"]:  # a subresource that takes a kind of another group
            group, version = each["entry"]["group"], each["entry"]["version"]
        served.add(f"{group}/{version}/{each['entry']['kind']}".removeprefix("/"))
    return sorted({*served, _DELETE_OPTIONS})


def collect(kinds: Iterable[str]) -> Json:
    """The kinds' messages and all that these are made of.

    Raises:
        CalledProcessError: the program failed; it has said why.
        BuildError: there is no Go.
    """
    collected: Json = json.loads(_go("run", "-trimpath", "-buildvcs=false", "./messages", *kinds))
    return collected


def _go(*arguments: str) -> str:
    finished = subprocess.run(
        [find_go(go_version((MODULE_DIR / "go.mod").read_text())), *arguments],
        cwd=MODULE_DIR,
        env=os.environ | {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return finished.stdout


def main(schemas: Path, path: Path) -> None:
    """Read the schemas and write the file."""
    served = kinds(json.loads(gzip.decompress(schemas.read_bytes())))
    new = path.with_name(f"{path.name}.new")
    new.write_bytes(pack(collect(served)))
    new.replace(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
