"""The kinds of which a Memcached owns objects besides its servers, in the order in which these are created."""

from __future__ import annotations

from typing import Final

from memcached_operator.core.objects.script_config_maps import SCRIPT_CONFIG_MAPS
from memcached_operator.core.objects.service import SERVICES
from memcached_operator.features.discovery.endpoint_objects import ENDPOINT_DEPLOYMENTS, ENDPOINT_SERVICES
from memcached_operator.features.discovery.server_list_configmap import CONFIG_MAPS
from memcached_operator.features.disruption_budget.budget import BUDGETS, ENDPOINT_BUDGETS
from memcached_operator.features.network_policy.network_policy import NETWORK_POLICIES

AUXILIARY: Final = (
    *(SCRIPT_CONFIG_MAPS, SERVICES, BUDGETS, NETWORK_POLICIES, CONFIG_MAPS),
    *(ENDPOINT_SERVICES, ENDPOINT_BUDGETS, ENDPOINT_DEPLOYMENTS),
)
