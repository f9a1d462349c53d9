"""Commands of each kind, and the files that they read."""

from __future__ import annotations

__all__ = ["COMMANDS", "FILES"]

_QUESTIONS = """\
-- name: by_region
-- error: 40
SELECT region, COUNT(*) AS n FROM people GROUP BY region;

-- name: age
SELECT AVG(age) AS age FROM people;

-- name: total
-- epsilon: 0.1
SELECT COUNT(*) AS n FROM people;
"""
_SURVEY = """\
[survey]
name = "exams"
version = 1
question = "Have you ever cheated?"
kind = "yes_no"
epsilon = "1"

[protocol]
name = "response"
size = 2
odds = "5837465777/2147483648"

[limits]
reports = 10000000
"""
_OF_SURVEY = "628612b33aecc92143e342fa2de40aa9"
_REPORTS = (
    *(
        f'{{"survey": "{_OF_SURVEY}", "id": "{number:032x}", "value": {number * number % 3}}}'
        for number in range(60)
    ),
    f'{{"survey": "{_OF_SURVEY[::-1]}", "id": "{60:032x}", "value": 1}}',
    "no report",
)
FILES = {
    "exams.toml": _SURVEY,
    "many.sql": _QUESTIONS,
    "regions.csv": "name,country\nnorth,A\nsouth,B\nwest,B\n",
    "reports.jsonl": "\n".join(_REPORTS),
    "rows.csv": "region,age,income\nnorth,30,1500\nsouth,55,2200\nwest,70,900\n",
    "table.csv": "region,age,job\nnorth,30,a\nnorth,31,b\nsouth,30,a\nsouth,33,a\nsouth,40,b\n",
}
"""Files beside the project: a survey and its reports, questions, public rows, and a table of its owner's."""

_GROUPS = "SELECT region, COUNT(*) AS n, AVG(age) AS age FROM people GROUP BY region"
_COUNT = "SELECT COUNT(*) AS n FROM people"
_REPORT = ("query", _GROUPS, "-e", "1", "-k", "groups", "--purpose", "a report")
_JOBS = "SELECT job, COUNT(*) AS n FROM people GROUP BY job ORDER BY n DESC"
_LEVELS = "SELECT region, ill, COUNT(*) AS n FROM people GROUP BY ROLLUP(region, ill)"
_SUM = "SELECT SUM(age) AS years FROM people"
_FORMATS = ((), ("-f", "csv"), ("-f", "json"), ("-f", "markdown"))
_PLAIN = ((), ("-f", "json"))

_LOGISTIC = ("train", "logistic", "--label", "ill", "--features", "age")
_LINEAR = ("train", "linear", "--label", "income", "--features", "age,region")
_ADDITIVE = ("train", "additive", "--label", "ill", "--features", "age")
_FAIR = ("--fairness", "region", "--fairness-epsilon", "1")
_REACH = ("anonymity", "reach", "table.csv", "-q", "region,age", "-o", "new.csv")
_SHOWN = (
    "groups", "jobs", "levels", "losses", "hierarchy", "yearly", "tables",
    "logistic", "additive", "fair fairness",
)  # fmt: skip

_Commands = tuple[tuple[str, ...], ...]


def _each(*words: str, formats: _Commands = _FORMATS) -> _Commands:
    return tuple((*words, *more) for more in formats)


COMMANDS: dict[str, _Commands] = {
    "query": (
        *_each("query", _GROUPS, "-e", "1", "--dry-run", formats=_PLAIN),
        ("query", _GROUPS, "--error", "40", "--size", "300", "--dry-run"),
        *_each(*_REPORT),
        (*_REPORT, "--level", "0.8"),
        (*_REPORT, "-f", "csv", "-o", "answer.csv"),
        ("query", _JOBS, "-e", "1", "--dry-run"),
        *_each("query", _JOBS, "-e", "1", "-k", "jobs"),
        ("query", _LEVELS, "-e", "1", "--consistent", "--level-shares", "0.2,0.3,0.5", "--dry-run"),
        *_each("query", _LEVELS, "-e", "1", "--consistent", "-k", "levels"),
        ("query", _SUM, "-e", "1", "--losses", "-k", "with losses"),
        ("query", _GROUPS, "-e", "1", "--selected", "-k", "selected"),
        ("query", "SELECT region, COUNT(*) AS n FROM people GROUP BY region HAVING n > 290", "--free"),
        ("query", "SELECT region, COUNT(*) AS n FROM people GROUP BY region", "--free", "--dry-run"),
    ),
    "query refused": (
        ("query", _COUNT),
        ("query", _COUNT, "-e", "1", "--error", "40"),
        ("query", _COUNT, "-e", "1", "--error", "40", "--json-errors"),
        ("query", _COUNT, "-e", "-1"),
        ("query", _COUNT, "-e", "5000"),
        ("query", _COUNT, "-e", "5000", "--dry-run"),
        ("query", _COUNT, "-e", "5000", "-f", "json"),
        ("query", _COUNT, "-e", "1", "-k", "groups"),
        ("query", _COUNT, "-e", "1", "--level", "2"),
        ("query", _COUNT, "-e", "1", "-o", "people.parquet"),
        ("query", _COUNT, "-e", "1", "-o", "nowhere/answer.csv"),
        ("query", _COUNT, "-e", "1", "-f", "xml"),
        ("query", _COUNT, "-e", "1", "--nonsense"),
        ("query", _COUNT, "-e", "1", "-p", "none.toml"),
        ("query", "nothing.sql", "-e", "1"),
        ("query", "", "-e", "1"),
        ("query", "SELECT * FROM people", "-e", "1"),
        ("query", "SELECT SUM(weight) FROM people", "-e", "1"),
        ("query", "SELECT COUNT(*) FROM poeple", "-e", "1"),
        ("query", "SELECT COUNT(* FROM people", "-e", "1"),
        ("query", "SELECT AVG(job) FROM people", "-e", "1"),
        ("query", "SELECT VAR_POP(income) FROM people", "--free"),
        ("query", _JOBS, "-e", "1", "--level-shares", "a,b"),
        ("query", _COUNT, "-e", "1", "-p", "shared.toml"),
        ("query", _COUNT, "-e", "1", "-p", "shared.toml", "-a", "anna", "--dry-run"),
        ("query", _COUNT, "-e", "2.5", "-p", "shared.toml", "-a", "anna", "--dry-run"),
    ),
    "losses": (
        *_each("losses", _SUM, "-e", "1", "--dry-run", formats=_PLAIN),
        *_each("losses", _SUM, "-e", "1", "-k", "losses"),
        ("losses", _SUM),
    ),
    "explain": (
        *_each("explain", _GROUPS, "-e", "1", formats=_PLAIN),
        ("explain", _GROUPS, "--error", "40", "--size", "300"),
        ("explain", _JOBS, "-e", "1"),
        ("explain", _LEVELS, "-e", "1", "--consistent"),
        ("explain", "SELECT region, QUANTILE(age, [0.1, 0.9]) FROM people GROUP BY region", "-e", "1"),
        ("explain", _COUNT, "-e", "5000"),
        ("explain", _COUNT),
    ),
    "workload": (
        *_each("workload", "yearly", "--dry-run", formats=_PLAIN),
        *_each("workload", "yearly", "-k", "yearly"),
        ("workload", "many.sql", "-e", "5000", "--dry-run"),
        ("workload", "none.sql"),
    ),
    "marginals": (
        *_each("marginals", "tables", "--dry-run", formats=_PLAIN),
        *_each("marginals", "tables", "-k", "tables"),
        *_each("marginals", "tables", "-k", "tables", "--show", "region,ill", formats=_PLAIN),
        ("marginals", "region,ill", "--error", "20", "--dry-run"),
        ("marginals", "region,nothing", "-e", "1"),
    ),
    "hierarchy": (
        *_each("hierarchy", "region,ill", "-e", "1", "--dry-run", formats=_PLAIN),
        *_each("hierarchy", "region,ill", "-e", "1", "-k", "hierarchy"),
        ("hierarchy", "region,ill"),
    ),
    "estimates": (
        *_each("bounds", "income", "-e", "1", "--dry-run", formats=_PLAIN),
        *_each("bounds", "income", "-e", "1", "-k", "bounds", formats=_PLAIN),
        ("bounds", "income"),
        ("bounds", "nothing", "-e", "1"),
        *_each("caps", "people", "--by", "job", "-e", "1", "--dry-run", formats=_PLAIN),
        *_each("caps", "people", "--by", "job", "-e", "1", "-k", "caps", formats=_PLAIN),
    ),
    "stream": (
        ("stream", "start", "weekly", "--dry-run"),
        ("stream", "start", "daily"),
        ("stream", "advance", "daily", "--now", "2026-01-05"),
        *_each("stream", "show", "daily"),
        ("stream", "show", "daily", "--period", "2026-01-02"),
        ("stream", "show", "daily", "--until", "2026-01-03"),
        *_each("stream", "show", "daily", "--all"),
        ("stream", "show", "daily", "--all", "--each", "-f", "csv"),
        ("stream", "show", "daily", "--plot"),
        ("stream", "show", "daily", "--html", "daily.html"),
        ("stream", "show", "weekly"),
        ("stream", "show", "yearly"),
        ("stream", "show", "daily", "--all", "--plot"),
    ),
    "train": (
        *_each(*_LOGISTIC, "-e", "1", "--dry-run", formats=_PLAIN),
        *_each(*_LOGISTIC, "-e", "1", "-k", "logistic", "-y", formats=_PLAIN),
        (*_LOGISTIC, "-e", "1", "-k", "logistic", "-y", "-o", "logistic.json"),
        ("predict", "logistic.json", "rows.csv"),
        ("predict", "logistic.json", "rows.csv", "-o", "predicted.csv"),
        (*_LINEAR, "-e", "1", "--dry-run"),
        (*_LINEAR, "-e", "1", "-k", "linear", "-y", "-o", "linear.json"),
        ("predict", "linear.json", "rows.csv"),
        (*_ADDITIVE, "-e", "1", "--dry-run"),
        (*_ADDITIVE, "-e", "1", "-k", "additive", "-y", "-o", "additive.json"),
        ("predict", "additive.json", "rows.csv"),
    ),
    "train refused": (
        _LOGISTIC,
        (*_LOGISTIC, "-e", "1"),
        (*_LOGISTIC, "-e", "5000", "-y"),
        (*_LOGISTIC, "-e", "5000", "--dry-run"),
        (*_LOGISTIC, "-e", "1", "-k", "groups", "-y"),
        (*_LOGISTIC, "-e", "1", "-y", "--report", "fairness.html"),
        (*_LOGISTIC, "-e", "1", "-y", "--weight", "region=east:3"),
        ("train", "forest", "--label", "ill", "-e", "1", "-y"),
        ("train", "logistic", "--label", "job", "-e", "1", "-y"),
        ("predict", "sfumato.toml", "rows.csv"),
        ("predict", "none.json", "rows.csv"),
        ("predict", "sfumato.toml", "people.parquet"),
    ),
    "fairness": (
        *_each(*_LOGISTIC, "-e", "1", *_FAIR, "--dry-run", formats=_PLAIN),
        *_each(*_LOGISTIC, "-e", "1", *_FAIR, "-k", "fair", "-y", formats=_PLAIN),
        (*_LOGISTIC, "-e", "1", *_FAIR, "-k", "fair", "-y", "--report", "fairness.html"),
    ),
    "ledger show": (
        *(("ledger", "show", f"@{key}") for key in _SHOWN),
        *(("ledger", "show", f"@{key}", "-f", "json") for key in _SHOWN),
        *(("ledger", "show", f"@{key}", "-f", "markdown") for key in ("levels", "yearly", "tables")),
        ("ledger", "show", "@levels", "-f", "csv", "-o", "levels.csv"),
        ("ledger", "show", "@linear", "-f", "csv"),
        ("ledger", "show", "@stream daily", "--step", "1"),
        ("ledger", "show", "0"),
        ("ledger", "show", "1"),
        ("ledger", "show", "9999"),
        ("ledger", "show", "@groups", "--step", "2"),
        ("ledger", "show", "@groups", "--ledger", "people.ledger", "-p", "none.toml"),
    ),
    "ledger": (
        *_each("ledger", "history", formats=_PLAIN),
        ("ledger", "history", "-n", "2"),
        ("ledger", "history", "-n", "-1"),
        *_each("ledger", "verify", formats=_PLAIN),
        ("ledger", "verify", "--anchor", "nonsense"),
        ("ledger", "anchor"),
        ("ledger", "receipt", "@groups"),
        ("ledger", "receipt", "9999"),
        (*_REPORT, "-f", "json", "-o", "held.json"),
        ("ledger", "receipt", "held.json"),
        ("ledger", "export", "--no-releases"),
        ("ledger", "export", "--no-releases", "--questions", "records.jsonl"),
        ("ledger", "erase"),
        ("ledger", "create"),
        ("ledger", "grant", "anna"),
    ),
    "ledger report": (
        ("ledger", "report", "--html", "record.html"),
        ("ledger", "report", "--html", "record.html", "-n", "2", "--no-questions"),
    ),
    "budget": (
        *_each("budget", formats=_PLAIN),
        ("budget", "-p", "none.toml"),
        *_each("check", formats=_PLAIN),
        ("check", "-p", "none.toml"),
        ("check", "-p", "shared.toml"),
    ),
    "advise": (
        *_each("advise", "--advantage", "0.1", formats=_PLAIN),
        ("advise", _GROUPS, "--error", "n=20", "--size", "300"),
        ("advise", "--workload", "yearly", "-e", "1"),
        ("advise", "--marginals", "tables", "--posterior", "0.05"),
        ("advise", "--stream", "daily", "--harm-chance", "0.001", "--harm-cost", "1000", "--funds", "90"),
        ("advise", "-e", "1", "-o", "advice.html"),
        ("advise", "--workload", "none"),
        ("advise", "-e", "1", "-o", "advice.txt"),
        ("advise", "-e", "0"),
    ),
    "survey": (
        *_each("survey", "show", "exams.toml", formats=_PLAIN),
        *_each("survey", "collect", "exams.toml", "reports.jsonl", formats=_PLAIN),
        ("survey", "collect", "exams.toml", "reports.jsonl", "--simplex", "--level", "0.8"),
        ("survey", "collect", "exams.toml", "rows.csv"),
        ("survey", "show", "sfumato.toml"),
        *_each("advise", "--survey", "exams.toml", "--people", "5000", formats=_PLAIN),
    ),
    "anonymity": (
        *_each("anonymity", "measure", "table.csv", "-q", "region,age", "-s", "job", formats=_PLAIN),
        *_each(*_REACH, "--k", "2", formats=_PLAIN),
        (*_REACH, "--k", "9"),
        ("anonymity", "measure", "table.csv", "-q", "nothing"),
    ),
    "projects": (
        ("advise", "--compare", "sfumato.toml", "shared.toml"),
        ("advise", "--compare", "sfumato.toml"),
        ("ledger", "history", "-p", "none.toml"),
        ("ledger", "verify", "--ledger", "none.ledger"),
        ("compare", "table.csv"),
        ("compare", "--answers", "a,b", "--low", "1"),
        ("audit", "-o", "audit.txt"),
        ("attack", "differencing", "-e", "0"),
        ("nothing",),
    ),
}  # fmt: skip
