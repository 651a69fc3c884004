"""How servers that run come to a changed specification: what a change costs, and how it reaches them."""
