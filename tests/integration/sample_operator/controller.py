import logging
import sys

from operator_runtime import ObjectKey, Operator, Result, plain
from tests.integration.sample_operator.settings import SampleSettings

logger = logging.getLogger(__name__)

CONFIG_MAPS = plain("v1", "ConfigMap", "configmaps")
LABELS = "example.com/sample"


def set_up(operator: Operator, settings: SampleSettings) -> None:
    logger.info("making %d parts, %s", settings.parts, "heavily" if "pydantic" in sys.modules else "lightly")

    async def reconcile(key: ObjectKey) -> Result:
        logger.info("made %d parts", settings.parts)
        return Result()

    operator.controller("sample", CONFIG_MAPS, reconcile, labels=LABELS)
