"""Homogeneity and background knowledge: what k-anonymity does not hide.

Homogeneity and background knowledge are from Machanavajjhala et al. 2007, composition of two tables from
Ganta, Kasiviswanathan and Smith 2008. Differential privacy is a promise against an attacker who knows
everybody else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.anonymity import Generalised, Goal, reach
from sfumato.anonymity.columns import Flags, Floats, Integers
from sfumato.attacks.attack_result import EPSILONS, AttackResult, MeasuredRate, right
from sfumato.attacks.population import invent_people
from sfumato.attacks.victims import enough, fair_sample, one_row_each, shuffled
from sfumato.backends.owned import read_owned
from sfumato.catalog import one_of
from sfumato.core import bernoulli, uniform_below
from sfumato.core.arguments import count
from sfumato.errors import InvalidArgument
from sfumato.plots import Axis, Bars, Picture

__all__ = ["homogeneity"]

_KS = (2, 5, 10, 25)
_RULED_OUT = 2
_SHARED = 0.75  # of the invented patients of a cell, how many have its usual illness
_WAYS = (  # to know somebody's value: for the reader of the facts, and of the picture
    ("from the table alone", "from the table alone"),
    (f"to who rules out {_RULED_OUT} values", f"ruling out {_RULED_OUT} values"),
    ("to who has two such tables", "from two such tables"),
)
_STORY = """\
A hospital makes its table k-anonymous before it hands it over: ZIP codes, birth dates and sexes are blurred
until at least k rows look alike. Nobody can say which row is Anna's. But the diagnoses stand beside them as
they are. Where all k rows say the same, so does hers. Who knows that she does not have two of the three
diagnoses of her class knows the third. Who gets a second such table, from another hospital, looks for what
both classes have in common. And who knows the other k - 1 reads hers off what is left. k is a number, but
not one that any of this depends on. Through this system the attacker may know everybody else, and is right
as often as epsilon says."""


def homogeneity(
    data: Any = None,
    *,
    quasi: Sequence[str] = ("zip", "birth_date", "sex"),
    secret: str = "diagnosis",
    value: Any = None,
    ks: Sequence[int] = _KS,
    epsilons: Sequence[float] = EPSILONS,
    people: int = 40_000,
    victims: int = 4_000,
) -> AttackResult:
    """Attack k-anonymous tables, for several k: of an invented hospital, or of one's own table.

    `value` is what the attacker would like to know that `secret` says (by default what about half of the rows
    say, or the most common). Each row is a person. For an owner's eyes, and no release.

    >>> found = homogeneity(people=2_000, ks=(2,), epsilons=(1,), victims=100)
    >>> found.naive.share  # who knows the others of the class
    1.0
    """
    if data is None:
        table = _invented(count(people, "people", least=500))
    else:
        table = read_owned(data, [*dict.fromkeys([*quasi, secret])])
    if table.num_rows < 4 * max(ks):
        raise InvalidArgument("the table has too few rows for these k", place="data")
    codes, values = _coded(table.column(secret))
    wanted = _wanted(codes, values, value, secret)
    made = {k: reach(table, quasi, Goal(k=k), sensitive=secret) for k in ks}
    known = {k: _known(one, codes, table, quasi, secret) for k, one in made.items()}
    classes = made[max(ks)].class_of
    order = shuffled(np.arange(len(classes)))
    chosen = order[np.unique(classes[order], return_index=True)[1]]  # one person of each class, at random
    chosen = chosen[fair_sample(codes[chosen] == wanted, victims)]
    enough(chosen, "people", "take a smaller k, or a `value` that more and fewer people have")
    flags = codes == wanted
    bits, own = flags[chosen], classes[chosen]
    exact = np.bincount(classes, weights=flags)
    others = exact[own] - bits
    finding = AttackResult(
        name="homogeneity",
        title="Homogeneity: hidden among k, and known all the same",
        story=_STORY,
        success=f"one person's {secret} told right",
        naive=right(exact[own] - others > 0.5, bits),
        curve=tuple(
            MeasuredRate.of_bits(epsilon, _asked(classes, flags, epsilon)[own] - others > 0.5, bits)
            for epsilon in epsilons
        ),
        facts=tuple(
            (f"k = {k}: known {who}", f"{share:.1%}")
            for k, shares in known.items()
            for (who, _), share in zip(_WAYS, shares, strict=True)
        ),
    )
    return finding.illustrated(
        f"{len(chosen):,} people, each in a class of at least {max(ks)} rows of the k-anonymous table. The "
        "attacker knows everybody else in the class. Of the k-anonymous table that is all it takes; of this "
        "system it is what the noise is made for.",
        before=(_bars(known),),
    )


def _known(
    made: Generalised, codes: Integers, table: Any, quasi: Sequence[str], secret: str
) -> tuple[float, float, float]:
    """Return the shares of people whose secret a k-anonymous table tells without any doubt, by `_WAYS`."""
    there = _held(made.class_of, codes)
    distinct = there.sum(axis=1)[made.class_of]
    left = distinct.copy()
    for ruled_out in _not_theirs(codes, there.shape[1]):
        left -= there[made.class_of, ruled_out]
    in_two = _in_two(table, codes, quasi, secret, made.goal)
    return float((distinct == 1).mean()), float((left == 1).mean()), in_two


def _invented(people: int) -> Any:
    """Invent patients whose illnesses come in clusters: most of a ZIP code, decade and sex share one.

    As they do where there is an outbreak, a hazard of one trade, or an illness of old age.
    """
    table = invent_people(people).patients(0.5)
    years = table.column("birth_date").to_numpy().astype("datetime64[Y]").astype(int)
    zips, _ = _coded(table.column("zip"))
    sexes, _ = _coded(table.column("sex"))
    _, cells = np.unique(np.stack([zips, years // 10, sexes]), axis=1, return_inverse=True)
    own, names = _coded(table.column("diagnosis"))
    usual = np.asarray(uniform_below(len(names), size=int(cells.max()) + 1))
    shared = np.asarray(bernoulli(_SHARED, size=len(own)), dtype=bool)
    diagnosis = pa.array(names).take(pa.array(np.where(shared, usual[cells], own)))
    return table.set_column(table.column_names.index("diagnosis"), "diagnosis", diagnosis)


def _coded(column: Any) -> tuple[Integers, list[Any]]:
    """Return values as numbers, and what the numbers stand for."""
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    return np.asarray(encoded.indices).astype(np.int64), encoded.dictionary.to_pylist()


def _wanted(codes: Integers, values: list[Any], value: Any, secret: str) -> int:
    if len(values) < 2:
        raise InvalidArgument(
            f"column `{secret}` is the same for everyone: there is nothing to guess", place="secret"
        )
    if value is None:
        return int(np.argmin(np.abs(np.bincount(codes) / len(codes) - 0.5)))
    if value not in values:
        raise InvalidArgument(f"no row has this value of `{secret}`", place="value")
    return values.index(value)


def _held(classes: Integers, codes: Integers) -> Flags:
    """Return, for each class, which values are in it."""
    there = np.zeros((int(classes.max()) + 1, int(codes.max()) + 1), dtype=bool)
    there[classes, codes] = True
    return there


def _not_theirs(codes: Integers, values: int) -> list[Integers]:
    """Return values that are not a person's own, and different from each other, drawn for each person."""
    if values <= _RULED_OUT:
        return []
    first = np.asarray(uniform_below(values - 1, size=len(codes)))
    second = np.asarray(uniform_below(values - 2, size=len(codes)))
    second = second + (second >= first)
    return [(codes + 1 + steps) % values for steps in (first, second)]


def _in_two(table: Any, codes: Integers, quasi: Sequence[str], secret: str, goal: Goal) -> float:
    """Divide people among two hospitals, a third to both; make both tables, and look at those in both."""
    order = shuffled(np.arange(len(codes)))
    third = len(codes) // 3
    if third < 2 * goal.k:
        return float("nan")
    held = []
    for who in (order[: 2 * third], order[third:]):
        made = reach(table.take(pa.array(who)), quasi, goal, sensitive=secret)
        held.append(_held(made.class_of, codes[who])[made.class_of])
    both = held[0][third:] & held[1][:third]  # who is in both comes last in the first, first in the second
    return float((both.sum(axis=1) == 1).mean())


def _asked(classes: Integers, flags: Flags, epsilon: float) -> Floats:
    """Ask this system how many of each class have it; which classes there are is taken to be public."""
    many = int(classes.max()) + 1
    table = pa.table({"person": np.arange(len(classes)), "class": classes, "flag": flags})
    columns = {"class": one_of(*range(many))}
    db = one_row_each(table, name="patients", unit="person", epsilon=epsilon, columns=columns)
    text = 'SELECT "class", COUNT(*) AS n FROM patients WHERE flag GROUP BY "class"'
    release = db.sql(text, epsilon=epsilon).release()
    counts = np.zeros(many)
    counts[release.column("class")] = release.column("n")
    return counts


def _bars(known: dict[int, tuple[float, float, float]]) -> Picture:
    return Picture(
        title="Known without any doubt, in spite of k",
        caption="The share of people whose value everybody can read off a k-anonymous table: because their "
        "class has no other; because the reader knows two values that are not theirs; because they are in "
        "two tables and only one value is in both classes.",
        x=Axis(title="k"),
        y=Axis(title="known without doubt", percent=True, low=0, high=1),
        marks=tuple(
            Bars(label=label, bars=tuple((f"k = {k}", shares[way]) for k, shares in known.items()))
            for way, (_, label) in enumerate(_WAYS)
        ),
    )
