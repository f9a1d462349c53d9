"""Parameters by name, as estimators of scikit-learn have them."""

from __future__ import annotations

import inspect
from typing import Any, Self

from sfumato.errors import InvalidArgument

__all__ = ["NamedParameters"]


class NamedParameters:
    """An estimator that keeps what it was made with, each under its own name."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return what the estimator was made with, by name."""
        return {
            name: getattr(self, name)
            for name in inspect.signature(type(self).__init__).parameters
            if name != "self"
        }

    def set_params(self, **parameters: Any) -> Self:
        """Change what the estimator was made with."""
        known = self.get_params()
        for name, value in parameters.items():
            if name not in known:
                raise InvalidArgument(
                    f"there is no parameter `{name}`", place=name, hints=(f"known: {', '.join(known)}",)
                )
            setattr(self, name, value)
        return self
