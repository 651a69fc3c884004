import logging
import sys

from operator_runtime import ObjectKey, Operator, Result, plain
from tests.integration.kettles.settings import KettleSettings

logger = logging.getLogger(__name__)

CONFIG_MAPS = plain("v1", "ConfigMap", "configmaps")
LABELS = "example.com/kettle"


def set_up(operator: Operator, settings: KettleSettings) -> None:
    logger.info("making %d cups, %s", settings.cups, "heavily" if "pydantic" in sys.modules else "lightly")

    async def reconcile(key: ObjectKey) -> Result:
        logger.info("made %d cups", settings.cups)
        return Result()

    operator.controller("kettle", CONFIG_MAPS, reconcile, labels=LABELS)
