"""What every test may use."""

from hypothesis import HealthCheck, settings

pytest_plugins = ["operator_runtime.testing.plugin", "tests.cluster"]

# How long an example takes says more about the machine than about the code.
settings.register_profile("project", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("project")
