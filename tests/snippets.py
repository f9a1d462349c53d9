"""Run the Python of a page. It needs nothing but Python, so that a fresh machine can run it too.

A block marked `python` that starts with `>>>` is a doctest: its output is compared, `...`
stands for anything. Any other `python` block is executed. Blocks of one page share names.

    python tests/snippets.py README.md
"""

from __future__ import annotations

import doctest
import re
import sys
from pathlib import Path

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run_page(text: str, name: str) -> int:
    """Run the Python blocks of a page in one namespace; return how many there were."""
    names: dict[str, object] = {"__name__": name}
    blocks = 0
    for match in FENCE.finditer(text):
        language, code = match.groups()
        if language != "python":
            continue
        blocks += 1
        line = text.count("\n", 0, match.start(2))
        if code.lstrip().startswith(">>>"):
            flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
            test = doctest.DocTestParser().get_doctest(code, names, name, name, line)
            report: list[str] = []
            doctest.DocTestRunner(optionflags=flags).run(test, out=report.append, clear_globs=False)
            names.update(test.globs)
            assert not report, "".join(report)
        else:
            exec(compile("\n" * line + code, name, "exec"), names)
    return blocks


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        run_page(Path(argument).read_text(), argument)
