"""What is known about each aggregate: syntax, kinds, measures, answer, forecast, notes.

`record` says what a record is, `registry` names them all; `counts`, `sums`, `moments`, `ranks` and
`histograms` are the families. The rest is what they share.
"""

__all__: list[str] = []
