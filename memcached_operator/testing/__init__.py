"""A testing kit for operators on `memcached_operator.runtime`; this project's own tests use it in the same form.

- `waiting`: await a state, with a deadline and a message that says what was seen last.
- `clock`: a clock and a sleep that move when a test says so.

Each module is imported by its own name.
"""
