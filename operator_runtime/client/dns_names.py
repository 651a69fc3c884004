"""Names as Kubernetes has them of RFC 1123: a label for a namespace, a subdomain for most other objects.

Checked before they become part of a request's path: what comes back otherwise speaks of anything but the name.
"""

from __future__ import annotations

import re
from typing import Final

# k8s.io/apimachinery, util/validation: IsDNS1123Label and IsDNS1123Subdomain.
LABEL_MAX_LENGTH: Final = 63
SUBDOMAIN_MAX_LENGTH: Final = 253
LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN: Final = rf"{LABEL}(\.{LABEL})*"

LABEL_IN_WORDS: Final = f"at most {LABEL_MAX_LENGTH} lower-case letters, digits and '-', not at the ends"
SUBDOMAIN_IN_WORDS: Final = f"at most {SUBDOMAIN_MAX_LENGTH} lower-case letters, digits, '-' and '.', not at the ends"


def is_label(name: str) -> bool:
    """Report whether a namespace can have this name."""
    return len(name) <= LABEL_MAX_LENGTH and re.fullmatch(LABEL, name) is not None


def is_subdomain(name: str) -> bool:
    """Report whether a ServiceAccount can have this name."""
    return len(name) <= SUBDOMAIN_MAX_LENGTH and re.fullmatch(SUBDOMAIN, name) is not None
