"""The demo: an API server, the operator, and a script of what a team does and what goes wrong, to be watched live.

`stage.py` sets it up, `script.py` is what happens, `world.py` what can be seen of it; `view.py` and `plain.py` show it.
The operator is a process of its own, as always; everything here speaks to the API like any other client.
"""
