"""The tables of a ledger in PostgreSQL: those of a file, a count of records, and the key.

The count is a row that the trigger of every insert moves on by one. So records are numbered without gaps even
by a program that takes no lock, and a tail that was cut off is noticed. Triggers refuse every change but
appending. The owner of the tables can drop them; that is what the chain of hashes is for.
"""

from __future__ import annotations

from typing import Any

from sfumato.errors import LedgerError
from sfumato.ledger.records import FORMAT
from sfumato.ledger.schema import check_format

__all__ = ["SCHEMA", "STATEMENTS", "check", "exists", "may_create"]

SCHEMA = "sfumato_ledger"
_SAFE = f"SECURITY DEFINER SET search_path = pg_catalog, {SCHEMA}, pg_temp"
_APPENDED = """
BEGIN
    UPDATE counted SET records = new.sequence WHERE records = new.sequence - 1;
    IF NOT FOUND THEN RAISE EXCEPTION 'records are appended in order' USING ERRCODE = '23000'; END IF;
    RETURN new;
END"""
_TEXTS = """
BEGIN
    IF NOT EXISTS (SELECT 1 FROM records WHERE sequence = new.sequence AND kind = 'reserved') THEN
        RAISE EXCEPTION 'a text belongs to a charge' USING ERRCODE = '23000';
    END IF;
    RETURN new;
END"""
_NEVER = """
BEGIN
    RAISE EXCEPTION 'records are never changed' USING ERRCODE = '23000';
END"""
_FUNCTIONS = {"appended": _APPENDED, "texts_of_charges": _TEXTS, "never": _NEVER}
_TRIGGERS = {
    "appended": "BEFORE INSERT ON records FOR EACH ROW EXECUTE FUNCTION appended()",
    "never_changed": "BEFORE UPDATE OR DELETE ON records FOR EACH ROW EXECUTE FUNCTION never()",
    "never_emptied": "BEFORE TRUNCATE ON records FOR EACH STATEMENT EXECUTE FUNCTION never()",
    "texts_of_charges": "BEFORE INSERT ON query_texts FOR EACH ROW EXECUTE FUNCTION texts_of_charges()",
    "texts_never_updated": "BEFORE UPDATE ON query_texts FOR EACH ROW EXECUTE FUNCTION never()",
}
_INDEXES = {
    "one_budget": "records (unit) WHERE kind = 'registered'",
    "charges": "records (unit, sequence) WHERE kind = 'reserved'",
    "signers": "records (sequence) WHERE kind = 'signer'",
    "analysts": "records (kind, unit, analyst, sequence) WHERE analyst IS NOT NULL",
    "one_unit": "records (source) WHERE source IS NOT NULL",
    "bindings": "records (unit, sequence) WHERE kind = 'bound'",
    "one_request": "records (key, coalesce(analyst, '')) WHERE key IS NOT NULL",
    "one_output": "records (reservation, coalesce(step, 0)) WHERE reservation IS NOT NULL",
}

STATEMENTS = (
    f"CREATE SCHEMA {SCHEMA}",
    f"""CREATE TABLE records (
    sequence bigint PRIMARY KEY,
    previous text COLLATE "C" NOT NULL,
    hash text COLLATE "C" NOT NULL,
    body text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    unit text COLLATE "C",
    analyst text COLLATE "C",
    source text COLLATE "C",
    key text COLLATE "C",
    reservation bigint,
    step bigint,
    release bytea
);
CREATE TABLE query_texts (sequence bigint PRIMARY KEY, text text COLLATE "C" NOT NULL);
CREATE TABLE counted (records bigint NOT NULL, format bigint NOT NULL) WITH (fillfactor = 10);
CREATE TABLE signing_key (secret bytea NOT NULL);
INSERT INTO counted VALUES (0, {FORMAT})""",
    *(
        f"CREATE {'UNIQUE ' if name.startswith('one_') else ''}INDEX {name} ON {what}"
        for name, what in _INDEXES.items()
    ),
    *(
        f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql {_SAFE} AS $${source}$$"
        for name, source in _FUNCTIONS.items()
    ),
    *(f"CREATE TRIGGER {name} {what}" for name, what in _TRIGGERS.items()),
)


def exists(connection: Any) -> bool:
    """Return whether the database holds a ledger, or what is left of one."""
    found = connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = ?", (SCHEMA,)).fetchone()
    return found is not None


def may_create(connection: Any) -> bool:
    """Return whether this role may make a ledger here."""
    query = "SELECT has_database_privilege(current_database(), 'CREATE')"
    return bool(connection.execute(query).fetchone()[0])


def check(connection: Any) -> None:
    """Refuse tables of another format, and tables whose triggers, functions or indexes were changed."""
    version = connection.execute("SELECT format FROM counted").fetchone()
    if version is None:
        raise LedgerError("the tables of the ledger are not those of its format", code="SF602")
    check_format(version[0])
    triggers = connection.execute(
        "SELECT t.tgname, p.prosrc FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid"
        " JOIN pg_namespace AS n ON n.oid = c.relnamespace JOIN pg_proc AS p ON p.oid = t.tgfoid"
        " WHERE n.nspname = ? AND NOT t.tgisinternal AND t.tgenabled = 'O'",
        (SCHEMA,),
    ).fetchall()
    indexes = connection.execute(
        "SELECT c.relname, x.indisunique FROM pg_index AS x JOIN pg_class AS c ON c.oid = x.indexrelid"
        " JOIN pg_namespace AS n ON n.oid = c.relnamespace"
        " WHERE n.nspname = ? AND NOT x.indisprimary AND x.indisvalid",
        (SCHEMA,),
    ).fetchall()
    called = {name: what.split()[-1].removesuffix("()") for name, what in _TRIGGERS.items()}
    if dict(triggers) != {name: _FUNCTIONS[called[name]] for name in _TRIGGERS} or dict(indexes) != {
        name: name.startswith("one_") for name in _INDEXES
    }:
        raise LedgerError("the tables of the ledger are not those of its format", code="SF602")
