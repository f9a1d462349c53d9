"""A terminal for programs that ask: a pseudo-terminal from the standard library."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import termios
import time
from pathlib import Path
from types import TracebackType

from tests.cli.programs import PROGRAM, environment

_CODES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[()][0-9A-B]|\x1b[=>]|\r")
_WAIT = 120.0


class Terminal:
    """A program on a terminal of 120 columns: send keys, expect text."""

    def __init__(self, folder: Path, *arguments: str, **more: str) -> None:
        variables = environment(TERM="xterm", **more)
        self._pid, self._file = pty.fork()
        if self._pid == 0:
            os.chdir(folder)
            os.execvpe(PROGRAM[0], [*PROGRAM, *arguments], variables)
        fcntl.ioctl(self._file, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self._code: int | None = None
        self._unread = ""
        self.raw = ""

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._code is None:
            os.kill(self._pid, 9)
            os.waitpid(self._pid, 0)
        os.close(self._file)

    def send(self, keys: str) -> None:
        """Type."""
        os.write(self._file, keys.encode())

    def expect(self, text: str) -> str:
        """Read until a text is on the screen; return what came before it."""
        deadline = time.monotonic() + _WAIT
        while (place := self._unread.find(text)) < 0:
            assert time.monotonic() < deadline and self._read(), f"{text!r} not in {self._unread[-3000:]!r}"
        before, self._unread = self._unread[:place], self._unread[place + len(text) :]
        return before

    def wait(self) -> int:
        """Read to the end; return the exit code."""
        deadline = time.monotonic() + _WAIT
        while self._read():
            assert time.monotonic() < deadline, self._unread[-3000:]
        _, status = os.waitpid(self._pid, 0)
        self._code = os.waitstatus_to_exitcode(status)
        return self._code

    def _read(self) -> bool:
        """Read a little; False at the end."""
        ready, _, _ = select.select([self._file], [], [], 0.2)
        if not ready:
            return True
        try:
            data = os.read(self._file, 65536)
        except OSError:  # the other side is closed
            return False
        if b"\x1b[6n" in data:
            self.send("\x1b[1;1R")  # where is the cursor?
        self.raw += data.decode(errors="replace")
        self._unread += _CODES.sub("", data.decode(errors="replace"))
        return bool(data)
