"""Records are written in one way only, and an outsider can check the chain with a few lines."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from fractions import Fraction as F

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core import PrivacyBudget, RenyiRule
from sfumato.core.events import Composed, Event, Gaussian, Laplace, Pure, RandomizedResponse, Repeated
from sfumato.errors import InvalidArgument, LedgerError
from sfumato.ledger.canonical import canonical, restored
from sfumato.ledger.charges import Reserved, Totals
from sfumato.ledger.query_texts import Erased
from sfumato.ledger.records import START, Committed, Link, Opened, Signer
from sfumato.ledger.terms import Bound, Granted, Proposal, Registered, Renewal
from tests.ledger.accounts import answer, opened

RESERVED = Reserved(
    at=5,
    unit="person",
    units=10**30,
    keys_units=0,
    event=Pure(loss=F(1, 3)).to_dict(),
    request_hash="r",
    data_version="1",
    policy_hash="p",
    nonce="0f",
    key=None,
)
RECORDS = [
    Opened(at=1, ledger="a"),
    Proposal(
        unit="person", budget=PrivacyBudget(epsilon=F(1, 3), delta=1e-6, rule=RenyiRule(order=4))
    ).registered(2),
    Signer(at=3, public_key="ab" * 32),
    Proposal(
        unit="person",
        budget=PrivacyBudget(epsilon=2),
        renewal=Renewal(every="week", budget=PrivacyBudget(epsilon=F(1, 7))),
        partition="birth_year",
        replace_one=True,
        distinct=True,
    ).registered(2),
    Granted.of("person", "alice", PrivacyBudget(epsilon=1), 2),
    Bound(at=3, unit="person", source="ab", column=None),
    Bound(at=3, unit="person", source="ab", column="person_id"),
    RESERVED.charged(Totals(), None),
    RESERVED.charged(Totals(common=10**40, keys_common=1, epoch=3, epoch_spent=4), 4),
    replace(RESERVED, analyst="alice", parts=("1980", "1981")).charged(
        Totals(parts={"1980": (1, 0), "1979": (5, 5)}, touched=2), None, (3, 4)
    ),
    replace(RESERVED, question_sha256="ab" * 32).charged(Totals(), None),
    Committed.of(7, b"noisy", 9),
    Erased(at=9, reservations=(3, 10**18)),
]

leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(codec="utf-8")).filter(lambda text: not text.lstrip("-").isdigit())
values = st.recursive(
    leaves | texts, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=10
)


@given(values)
def test_canonical_json_reads_back_and_is_ascii(value):
    text = canonical(value)
    assert text.isascii() and restored(json.loads(text)) == value
    assert canonical(json.loads(text)) == text


def test_canonical_json_does_not_depend_on_order():
    assert canonical({"a": 1, "b": 2}) == canonical({"b": 2, "a": 1}) == '{"a":"1","b":"2"}'


@pytest.mark.parametrize("value", [float("nan"), float("inf"), b"x", {1: 2}, {"a": {3}}, F(1, 2)])
def test_what_has_no_canonical_form_is_refused(value):
    with pytest.raises((InvalidArgument, ValueError)):
        canonical(value)


@pytest.mark.parametrize(
    "event",
    [
        Composed(events=(Gaussian(sigma=50), Repeated(event=Laplace(scale=F(1, 3)), times=3))),
        RandomizedResponse(truth=0.75, choices=2),
    ],
)
def test_events_read_back_from_canonical_json(event):
    assert Event.from_dict(restored(json.loads(canonical(event.to_dict())))) == event


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.kind)
def test_records_read_back(record):
    link = Link(sequence=12, previous=START, body=record.body(12))
    again = link.read()
    assert type(again) is type(record) and again.body(12) == link.body
    if isinstance(record, Registered) and isinstance(again, Registered):
        assert again.terms() == record.terms()
    if isinstance(record, Reserved) and isinstance(again, Reserved):
        assert again.happened() == record.happened()


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.kind)
def test_a_body_is_written_in_one_way_only(record):
    body = record.body(12)
    fields = json.loads(body)
    variants = [body + " ", body.replace(":", ": ", 1), json.dumps(fields), json.dumps({**fields, "x": "1"})]
    variants += [canonical({key: item for key, item in fields.items() if key != name}) for name in fields]
    variants += [canonical({**fields, name: 0.5}) for name in fields]
    variants += [
        "",
        "[]",
        "null",
        "5",
        "{}",
        "[" * 100_000,
        '{"kind":["reserved"]}',
        body[:-1] + ',"at":"1"}',
    ]
    for variant in variants:
        if variant != body:
            with pytest.raises(LedgerError):
                Link(sequence=12, previous=START, body=variant).read()
    with pytest.raises(LedgerError):
        Link(sequence=13, previous=START, body=body).read()


def test_an_outsider_can_check_the_chain():
    """The whole of the documented rule, with nothing of this package."""
    ledger = opened(None)
    for _ in range(5):
        answer(ledger)
    previous = "0" * 64
    for number, (sequence, before, digest, body, *_, release) in enumerate(ledger._journal.rows(), start=1):
        record = json.loads(body)
        assert before == previous and int(record["sequence"]) == sequence == number
        previous = hashlib.sha256((before + "\n" + body).encode()).hexdigest()
        assert digest == previous
        if record["kind"] == "committed":
            assert hashlib.sha256(release).hexdigest() == record["release_sha256"]
    assert ledger.head().hash == previous
