"""Identity of this operator: one of those that the runtime can carry."""

from memcached_operator import __version__
from operator_runtime import Program

PROGRAM = Program(
    "memcached-operator",
    __version__,
    description="Keeps memcached running on Kubernetes as Memcached resources specify.",
)
