"""Fitted networks: what leaves. All of it may be shown to anybody, and predicts about public rows."""

from __future__ import annotations

import base64
import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from sfumato.core.arguments import FloatArray
from sfumato.errors import InvalidArgument
from sfumato.learn.fitted_model import LabelledModel
from sfumato.learn.networks.module_state import is_stateless, refuse_state
from sfumato.learn.networks.modules import Parameters, architecture, multilayer, require_torch, set_parameters

if TYPE_CHECKING:
    from torch.nn import Module

__all__ = ["FittedNetwork"]

_BLOCK = 64  # rows that go through the module at once, always as many


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class FittedNetwork(LabelledModel):
    """A published network: its parameters, and what they are parameters of.

    `hidden` are the sizes of the layers of the built-in network; None: it is a module of the user's, which
    `architecture` tells from others, and which is given again after loading (`with_module`).

    >>> import pyarrow as pa
    >>> import sfumato as sf
    >>> from sfumato.learn import FittedNetwork, NeuralNetwork
    >>> people = pa.table({"who": range(900), "age": [20, 70] * 450, "ill": [False, True] * 450})
    >>> columns = {"age": sf.between(0, 100)}
    >>> budget = sf.Budget(epsilon=9, delta=1e-6)
    >>> db = sf.connect(people, name="people", unit="who", columns=columns, budget=budget)
    >>> network = NeuralNetwork(label="ill", epsilon=8, hidden=(16,), steps=20, sampling=1, rate=0.1)
    >>> stored = network.fit(db.table("people")).release_.to_json()
    >>> FittedNetwork.from_json(stored).predict({"age": [10, 90]}).tolist()
    [False, True]
    """

    kind: ClassVar[str] = "network"

    hidden: tuple[int, ...] | None
    architecture: str
    parameters: Parameters
    module: Any = field(default=None, repr=False)  # with these parameters; not stored

    def with_module(self, module: Module) -> FittedNetwork:
        """Return this network with its module, which gets the parameters; refuse another module.

        A module that keeps something of one row for the next is refused, too.
        """
        if architecture(module) != self.architecture:
            raise InvalidArgument(
                "this is another module than the one that was trained",
                place="module",
                hints=("make it as it was made for training, with the same parameters that are not trained",),
            )
        if not is_stateless(module):
            refuse_state(module, self.features.width)
        set_parameters(module, self.parameters)
        return replace(self, module=module.eval())

    def _ready(self) -> Any:
        if self.module is not None:
            return copy.deepcopy(self.module).eval()  # what a module keeps of rows stays in the copy
        if self.hidden is None:
            raise InvalidArgument(
                "a network of your own module predicts with that module",
                place="module",
                hints=("FittedNetwork.from_json(text).with_module(module)",),
            )
        made = multilayer(self.features.width, self.hidden, len(self.classes))
        set_parameters(made, self.parameters)
        return made.eval()

    def probabilities_of(self, encoded: npt.NDArray[Any]) -> FloatArray:
        """Return the probability of each class for encoded rows: a function of each row alone.

        Each row is computed by itself, at the same place of the same memory. Beside others it would be
        rounded in another way, by its place among them: with large weights by 1e-4 and more. A module that
        could keep something of a row is copied anew for each.
        """
        return self._computed(encoded, at_once=1)

    def predict_proba(self, data: Any) -> FloatArray:
        """Return the probability of each class for each public row."""
        return self._computed(self.features.of_public(data), at_once=_BLOCK)

    def _computed(self, encoded: npt.NDArray[Any], *, at_once: int) -> FloatArray:
        torch, module = require_torch(), self._ready()
        anew = at_once == 1 and not is_stateless(module)
        found = np.zeros((len(encoded), len(self.classes)))
        block = np.zeros((at_once, encoded.shape[1]), dtype=np.float32)
        rows = torch.from_numpy(block)
        with torch.no_grad():
            for first in range(0, max(1, len(encoded)), at_once):  # without rows, too, a module is tried
                some = encoded[first : first + at_once]
                block[: len(some)] = some
                applied = copy.deepcopy(module) if anew else module
                scores = torch.softmax(applied(rows).double(), dim=1).numpy()
                found[first : first + at_once] = scores[: len(some)]
        return found

    @property
    def said(self) -> str:
        """What the network is, in a line."""
        return (
            f"network of `{self.label.name}` on {len(self.features.columns)} columns "
            f"({self.features.width} features), with {len(self.parameters):,} parameters"
        )

    def _plain(self) -> dict[str, Any]:
        plain = LabelledModel._plain(self)
        del plain["module"]
        return {**plain, "parameters": base64.b64encode(self.parameters.astype("<f4").tobytes()).decode()}

    @staticmethod
    def _fields_of(plain: dict[str, Any]) -> dict[str, Any]:
        parameters = np.frombuffer(bytearray(base64.b64decode(plain["parameters"])), "<f4")
        return {**LabelledModel._fields_of(plain), "parameters": parameters}
