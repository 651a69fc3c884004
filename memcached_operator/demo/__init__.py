"""The demo: an API server, the operator, and a script of what a team does and what goes wrong, to be watched live.

`clusters.py` sets it up, `script.py` is what happens, `cluster_state.py` what can be seen of it; `view.py` and
`plain.py` show it. The operator runs beside it, by its own connections; everything here speaks to the API as any other
client does.
"""
