"""The auditor: is what a mechanism claims about itself false? Lower bounds that are sound, and exact values.

    lower_bound       of anything that can be run, between two neighbours
    examine           a subject: a claim, a run, and neighbours that are proposed
    examine_query     a question of this system, over neighbours invented from its catalog
    examine_training  one training run of a model, with canaries
    exact_epsilon     where the law is a finite table
    suite             this system as a whole, with a zoo of broken mechanisms that must all be caught

A lower bound can prove a claim false. It never proves one true.
"""

from sfumato.audit.black_box import Pair, lower_bound, repeated
from sfumato.audit.evidence import Evidence
from sfumato.audit.neighbours import answers, numbers
from sfumato.audit.one_run import one_run_epsilon
from sfumato.audit.output_table import OutputColumns
from sfumato.audit.queries import examine_query
from sfumato.audit.reports import write_report
from sfumato.audit.subject import Claim, Subject, Verdict, examine
from sfumato.audit.suites import Report, suite
from sfumato.audit.training_runs import examine_training
from sfumato.audit.white_box import exact_epsilon, finite_epsilon
from sfumato.audit.worlds import tables

__all__ = [
    "Claim",
    "Evidence",
    "OutputColumns",
    "Pair",
    "Report",
    "Subject",
    "Verdict",
    "answers",
    "exact_epsilon",
    "examine",
    "examine_query",
    "examine_training",
    "finite_epsilon",
    "lower_bound",
    "numbers",
    "one_run_epsilon",
    "repeated",
    "suite",
    "tables",
    "write_report",
]
