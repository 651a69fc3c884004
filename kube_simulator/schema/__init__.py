"""What objects may look like: the schemas of Kubernetes' own kinds and of CRDs, and what follows from them."""
