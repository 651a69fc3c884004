"""What it costs the operator to hold and to follow very many objects, by a server that only plays them."""
