"""What a model does to groups of public rows: exact, free, and no part of any report about private rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.core import Proportion
from sfumato.errors import InvalidArgument
from sfumato.learn.fairness import Groups, released
from sfumato.learn.fairness_cells import Subgroups
from sfumato.learn.features import public_codes, public_column

__all__ = ["PublicComparison", "PublicGroup", "compare_with_public"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicGroup:
    """How many public rows of a group are predicted right."""

    name: str
    right: Proportion


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicComparison:
    """The accuracy of a model on groups of public rows: not a release, for nothing private was looked at."""

    groups: tuple[PublicGroup, ...]

    def __repr__(self) -> str:
        lines = [
            f"{one.name}: {one.right.share:.1%} ({100 * low:.1f} to {100 * high:.1f}) of {one.right.trials:,}"
            for one in self.groups
            for low, high in [one.right.interval()]
        ]
        return "\n".join([*lines, "-- public rows alone: free, and in no report about private rows"])


def compare_with_public(model: Any, data: Any, *, groups: Groups) -> PublicComparison:
    """Return the accuracy of a fitted model on each group of a public table that holds the label. Free.

    Groups without rows are left out. Intervals are those of a sample (Clopper and Pearson).

    >>> import pyarrow as pa
    >>> import sfumato as sf
    >>> from sfumato.learn import LogisticRegression, compare_with_public
    >>> people = pa.table({"who": range(2000), "age": [20, 70] * 1000, "ill": [False, True] * 1000})
    >>> budget = sf.Budget(epsilon=3, delta=1e-6)
    >>> db = sf.connect(people, name="people", unit="who", columns={"age": sf.between(0, 100)}, budget=budget)
    >>> model = LogisticRegression(label="ill", epsilon=1).fit(db.table("people"))
    >>> public = {"age": [10, 90, 95], "ill": [False, True, True], "sex": ["f", "f", "m"]}
    >>> [(one.name, one.right.hits) for one in compare_with_public(model, public, groups=["sex"]).groups]
    [('everyone', 3), ('sex = f', 2), ('sex = m', 1)]
    """
    found = released(model)
    predicted = np.argmax(found.predict_proba(data), axis=1)
    right = predicted == public_codes(public_column(data, found.label.name), found.classes)
    if not len(right):
        raise InvalidArgument("there are no public rows", place="data")
    compared = [PublicGroup(name="everyone", right=_proportion(right))]
    for given in groups:
        names = (given,) if isinstance(given, str) else tuple(given)
        columns = {name: public_column(data, name) for name in names}
        found_values = tuple(tuple(sorted(set(column), key=str)) for column in columns.values())
        divided = Subgroups(columns=names, values=found_values)
        pairs = zip(columns.items(), found_values, strict=True)
        codes = divided.codes({name: public_codes(one, listed) for (name, one), listed in pairs}, len(right))
        compared += [
            PublicGroup(name=name, right=_proportion(right[codes == place]))
            for place, name in enumerate(divided.names)
            if (codes == place).any()
        ]
    return PublicComparison(groups=tuple(compared))


def _proportion(right: Any) -> Proportion:
    return Proportion(hits=int(right.sum()), trials=len(right))
