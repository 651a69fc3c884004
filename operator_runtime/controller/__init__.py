"""Controllers: what enqueues keys, the workers that reconcile them, and what a reconcile uses."""
