"""Pictures for a class: ideas and measures of differential privacy, drawn from exact laws.

    ideas      what a mechanism does, and what happens to several of them
    measures   the promises that a person may be given, and which of them implies which

Nothing here is simulated, so a picture is the same on every run. Each function returns a
`plots.Picture`: a notebook shows it, `plots.save` writes it to a file. `docs/learn/` explains them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from sfumato.lessons.ideas import (
    coin_toss,
    composition,
    group_privacy,
    laplace_and_gaussian,
    post_processing,
    privacy_loss,
    simplex,
)
from sfumato.lessons.measures import (
    delta,
    gaussian,
    implications,
    individual,
    local,
    pure,
    renyi,
    shuffled,
    zcdp,
)
from sfumato.plots import Picture as _Picture

__all__ = [
    "LESSONS",
    "coin_toss",
    "composition",
    "delta",
    "gaussian",
    "group_privacy",
    "implications",
    "individual",
    "laplace_and_gaussian",
    "local",
    "post_processing",
    "privacy_loss",
    "pure",
    "renyi",
    "shuffled",
    "simplex",
    "zcdp",
]

LESSONS: Mapping[str, Callable[[], _Picture]] = MappingProxyType(
    {
        "coin-toss": coin_toss,
        "simplex": simplex,
        "laplace-and-gaussian": laplace_and_gaussian,
        "privacy-loss": privacy_loss,
        "composition": composition,
        "group-privacy": group_privacy,
        "post-processing": post_processing,
        "pure": pure,
        "delta": delta,
        "gaussian": gaussian,
        "zcdp": zcdp,
        "renyi": renyi,
        "individual": individual,
        "local": local,
        "shuffled": shuffled,
        "implications": implications,
    }
)
"""The picture of each page of `docs/learn/`, in the order to read them: ideas, then measures."""
