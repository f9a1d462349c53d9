"""An animal of the zoo: a mistake that was made in earnest, with a sound twin that does the same right."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.audit.subject import Claim, Subject

__all__ = ["Animal", "ONE"]

ONE = Claim(epsilon=1)
"""What nearly every animal claims."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Animal:
    """A broken mechanism under a false claim, and its twin under a true one."""

    subject: Subject
    twin: Subject
    mistake: str
    source: str

    @property
    def name(self) -> str:
        """What it is called."""
        return self.subject.name
