"""The options of a question: the table of what a caller may give, and the record of what was given.

The command line reads the table for its help, so annotations are evaluated while this is loaded (there is no
future import), and what takes long to import is quoted here, and imported where it is used.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict, TypeVar

from sfumato.errors import InvalidArgument

if TYPE_CHECKING:
    from sfumato.core.arguments import Number

__all__ = [
    "DEFAULT_OPTIONS",
    "OptionFlag",
    "Options",
    "QUESTION_OPTIONS",
    "QuestionOption",
    "QuestionOptions",
    "options_explained",
]

_Function = TypeVar("_Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class OptionFlag:
    """An option of a question on the command line: a switch, a number, or numbers divided by commas.

    A switch that is set gives the option its `value`.
    """

    name: str
    help: str
    takes: Literal["switch", "number", "numbers"] = "switch"
    value: Any = True


@dataclass(frozen=True, slots=True)
class QuestionOption:
    """What an option of a question says, and its flag, if the command line has it.

    `limit`: whether it limits what one unit adds to an answer.
    """

    says: str
    flag: OptionFlag | None = None
    limit: bool = False


class QuestionOptions(TypedDict, total=False):
    """The options of a question, but for epsilon; what is None stays as the statement says.

    `Database.sql`, the command line and the table in docs/queries.md are made from it. An option stands here,
    with what is kept of it in `Options`, and in the code that gives it its meaning.
    """

    delta: Annotated[
        "Number | None",
        QuestionOption("How much of the budget's delta for keys the search for groups may use."),
    ]
    noise: Annotated[
        str | None, QuestionOption('`"laplace"` or `"gaussian"`; else the one with the smaller error.')
    ]
    weights: Annotated[
        "Mapping[str, Number] | None",
        QuestionOption('How much the accuracy of each column matters: `{"n": 1, "mean": 3}`.'),
    ]
    max_groups: Annotated[
        int | None,
        QuestionOption(
            "In how many groups one unit counts.",
            OptionFlag("--max-groups", "How many groups one unit may count in.", "number"),
            limit=True,
        ),
    ]
    max_rows: Annotated[
        int | None,
        QuestionOption(
            "With how many rows one unit counts in each group.",
            OptionFlag("--max-rows", "With the weight of how many rows in each of them.", "number"),
            limit=True,
        ),
    ]
    max_rows_total: Annotated[
        int | None,
        QuestionOption(
            "With how many rows one unit counts in all of its groups together.",
            OptionFlag(
                "--max-rows-total", "With the weight of how many rows in all of them together.", "number"
            ),
            limit=True,
        ),
    ]
    max_distinct: Annotated[
        int | None,
        QuestionOption(
            "How many values one unit brings to each `COUNT(DISTINCT ..)` of a group.", limit=True
        ),
    ]
    losses: Annotated[
        bool | None,
        QuestionOption(
            "`True` measures what caps and bounds leave out, for a twentieth of the cost.",
            OptionFlag("--losses", "Measure what caps and bounds leave out, for 5% of the cost."),
        ),
    ]
    keys: Annotated[
        Literal["declared", "selected"] | None,
        QuestionOption(
            '`"declared"` insists that all groups are known in advance,'
            ' `"selected"` that they are found privately.',
            OptionFlag(
                "--selected",
                "Select groups privately, known in public or not: small ones are missing.",
                value="selected",
            ),
        ),
    ]
    min_units: Annotated[
        int | None, QuestionOption("Groups whose noisy number of units is below this are not shown.")
    ]
    others: Annotated[
        bool | None,
        QuestionOption("`True`: one more row, for everything that is in no group that is shown."),
    ]
    consistent: Annotated[
        bool | None,
        QuestionOption(
            "`True`: answers over `ROLLUP`, `CUBE` or `GROUPING SETS` add up exactly.",
            OptionFlag("--consistent", "Answers over ROLLUP, CUBE or GROUPING SETS add up."),
        ),
    ]
    level_shares: Annotated[
        "Sequence[Number] | None",
        QuestionOption(
            "What each level of a consistent `ROLLUP` gets of the cost, the coarsest first:"
            " `(0.02, 0.08, 0.9)`.",
            OptionFlag(
                "--level-shares",
                "What levels get of the cost, the coarsest first: 0.02,0.08,0.9.",
                "numbers",
            ),
        ),
    ]
    non_negative: Annotated[
        bool | None,
        QuestionOption(
            "`True`: counts below zero are shown as zero; consistent ones still add up.",
            OptionFlag(
                "--non-negative", "Counts from zero on; that is biased. Consistent ones still add up."
            ),
        ),
    ]
    intervals: Annotated[
        bool | None,
        QuestionOption("`False` leaves out what nothing but an interval needs; of a lone quantile only."),
    ]


QUESTION_OPTIONS: Mapping[str, QuestionOption] = {
    name: said.__metadata__[0] for name, said in QuestionOptions.__annotations__.items()
}
"""What each option says, by its name."""


def options_explained(function: _Function) -> _Function:
    """Add what each option says to the docstring of a function that takes them, for `help`."""
    lines = (f"- `{name}`: {option.says}" for name, option in QUESTION_OPTIONS.items())
    function.__doc__ = "\n".join([inspect.cleandoc(function.__doc__ or ""), "", *lines])
    return function


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a question says about its own treatment; None leaves it to the catalog and the caller.

    Each is read from the one of the same name in `QuestionOptions`, which says what it means. What is added
    now is `field(default=.., metadata={"later": True})`: questions without it keep their fingerprints.
    """

    epsilon: Fraction | None = None
    delta: Fraction | None = None
    max_groups: int | None = None
    max_rows: int | None = None
    max_rows_total: int | None = None
    max_distinct: int | None = None
    min_units: int | None = None
    noise: str | None = None
    keys: Literal["declared", "selected"] | None = None
    others: bool = False
    weights: Mapping[str, Fraction] = field(default_factory=dict, hash=False)
    non_negative: bool = False
    intervals: bool = True
    losses: bool = False
    consistent: bool = False
    level_shares: tuple[Fraction, ...] = ()

    def __post_init__(self) -> None:
        self._read_quantities()
        if self.keys not in (None, "declared", "selected"):
            hint = "leave it out: declared groups are shown, others are found privately"
            message = f"keys must be declared or selected, got {self.keys!r}"
            raise InvalidArgument(message, place="keys", hints=(hint,))
        for name in _SWITCHES:
            if not isinstance(getattr(self, name), bool):
                raise InvalidArgument(f"{name} must be True or False", place=name, hints=(f"{name}=True",))
        self._read_lists()
        if self.level_shares and not self.consistent:
            hint = "consistent=True"
            raise InvalidArgument(
                "level_shares are for consistent answers", place="level_shares", hints=(hint,)
            )

    def _read_quantities(self) -> None:
        if self.epsilon is not None or self.delta is not None:
            from sfumato.core.arguments import budget_quantity, delta_quantity

            if self.epsilon is not None:
                object.__setattr__(self, "epsilon", budget_quantity(self.epsilon, "epsilon"))
            if self.delta is not None:
                object.__setattr__(self, "delta", delta_quantity(self.delta))
        for name in _WHOLE_NUMBERS:
            if (value := getattr(self, name)) is not None:
                from sfumato.catalog.table import cap

                object.__setattr__(self, name, cap(value, name))
        if self.noise is not None:
            from sfumato.core.noise_law import noise_laws

            noise_laws(self.noise)  # refuses an unknown name

    def _read_lists(self) -> None:
        if not isinstance(self.weights, Mapping) or not all(isinstance(name, str) for name in self.weights):
            message = "weights say of columns, by name, how much they matter"
            raise InvalidArgument(message, place="weights", hints=("weights={'n': 1, 'mean': 3}",))
        given: Any = self.level_shares
        if not isinstance(given, list | tuple):
            message = "level_shares are numbers, one for each level, the coarsest first"
            raise InvalidArgument(message, place="level_shares", hints=("level_shares=(0.02, 0.08, 0.9)",))
        if not self.weights and not given:
            object.__setattr__(self, "weights", {})
            object.__setattr__(self, "level_shares", ())
            return
        from sfumato.core.arguments import positive

        weights = {name: positive(weight, f"weights[{name!r}]") for name, weight in self.weights.items()}
        object.__setattr__(self, "weights", weights)
        shares = tuple(positive(share, "level_shares") for share in given)
        object.__setattr__(self, "level_shares", shares)


_WHOLE_NUMBERS = tuple(one.name for one in fields(Options) if one.type == int | None)
_SWITCHES = tuple(one.name for one in fields(Options) if one.type is bool)

DEFAULT_OPTIONS = Options()
"""What holds of a question that says nothing about its treatment."""
