"""`spec.extstore`: a disk for what does not fit into memory."""
