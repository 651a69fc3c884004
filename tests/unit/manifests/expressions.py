"""PromQL as trees: what an expression looks at."""

from __future__ import annotations

import re
from collections.abc import Iterator

import promql_parser as promql

# What Grafana fills in.
PLACEHOLDERS = {"$__rate_interval": "5m"}


def parsed(expression: str) -> promql.Expr:
    """An expression of a rule, or of a panel with what Grafana fills in."""
    for placeholder, value in PLACEHOLDERS.items():
        expression = expression.replace(placeholder, value)
    variable = re.fullmatch(r"label_values\((.+), (\w+)\)", expression)
    tree: promql.Expr = promql.parse(f"count by ({variable[2]}) ({variable[1]})" if variable else expression)
    return tree


def nodes(tree: promql.Expr) -> list[promql.Expr]:
    """It and all its parts."""
    found: list[promql.Expr] = []
    promql.walk(tree, found.append)
    return found


def selectors(tree: promql.Expr) -> Iterator[promql.VectorSelector]:
    """Those of its parts that name metrics."""
    for node in nodes(tree):
        if isinstance(node, promql.VectorSelector):
            yield node
        elif isinstance(node, promql.MatrixSelector):
            yield node.vector_selector


def metrics_of(expression: str) -> set[str]:
    """The names of all metrics that an expression looks at."""
    return {selector.name or "" for selector in selectors(parsed(expression))}


def sums(tree: promql.Expr) -> Iterator[tuple[list[str], promql.Expr]]:
    """The labels by which it sums up, with what is summed up by them."""
    for node in nodes(tree):
        if isinstance(node, promql.AggregateExpr) and node.modifier is not None:
            yield node.modifier.labels, node.expr


def joins(tree: promql.Expr) -> Iterator[tuple[list[str], promql.Expr]]:
    """The labels by which it joins two sides, with both."""
    for node in nodes(tree):
        if isinstance(node, promql.BinaryExpr) and node.modifier is not None and node.modifier.matching is not None:
            yield node.modifier.matching.labels, node
