"""Schemas of Kubernetes' own kinds and of CRDs, and what follows from them."""
