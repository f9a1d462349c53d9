"""Bounding in this process: rows as packed words, of which some count, with a weight; DuckDB hands rows over.

Engines on servers bound contributions by SQL of their own (`backends.statements`), and no row leaves them.
"""

__all__: list[str] = []
