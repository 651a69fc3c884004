"""Schema of all settings, by the program's name."""

from typing import Final

from memcached_operator.about import PROGRAM
from memcached_operator.settings import Settings
from operator_runtime.settings.schema import Schema

SCHEMA: Final = Schema(Settings, PROGRAM)
