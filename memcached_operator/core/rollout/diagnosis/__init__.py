"""Why a server does not start: what its pod alone does not show."""
