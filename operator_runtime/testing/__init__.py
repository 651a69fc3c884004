"""A testing kit for operators on `operator_runtime`; this project's own tests use it in the same form.

- `waiting`: await a state, with a deadline and a message that has what was seen last.
- `clock`: a clock and a sleep that a test moves.
- `cluster`: a simulated Kubernetes API, with objects to apply, faults to inject, and an operator to run against it on
  the test's event loop (`running`).
- `plugin`: that cluster as the pytest fixture `simulator`.

Each module is imported by its own name. `waiting` and `clock` take nothing but Python; the others the extra `testing`.
"""
