"""What leaves the vault: noise, answers with intervals, free post-processing, the release."""

from sfumato.release.answers import NoisyTable, tabulate
from sfumato.release.noise import NoisyGroups, add_noise
from sfumato.release.publication import cost_record, publish
from sfumato.release.published import Published
from sfumato.release.release import Release

__all__ = [
    "NoisyGroups",
    "NoisyTable",
    "Published",
    "Release",
    "add_noise",
    "cost_record",
    "publish",
    "tabulate",
]
