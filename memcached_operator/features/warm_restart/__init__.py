"""`spec.warmRestart`: items outlive a restart in the pod."""
