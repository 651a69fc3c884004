import logging
import sys

from operator_runtime import ObjectKey, Operator, Result, RuntimeConfig, plain

logger = logging.getLogger(__name__)

CONFIG_MAPS = plain("v1", "ConfigMap", "configmaps")
LABELS = "example.com/kettle"


class KettleConfig(RuntimeConfig, frozen=True):
    """The settings as the operator's process gets them."""

    cups: int


def set_up(operator: Operator, config: KettleConfig) -> None:
    logger.info("making %d cups, %s", config.cups, "heavily" if "pydantic" in sys.modules else "lightly")

    async def reconcile(key: ObjectKey) -> Result:
        logger.info("made %d cups", config.cups)
        return Result()

    operator.controller("kettle", CONFIG_MAPS, reconcile, labels=LABELS)
