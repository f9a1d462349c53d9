"""What is known about each aggregate: syntax, kinds, measures, answer, forecast, notes."""

__all__: list[str] = []
