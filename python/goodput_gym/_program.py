"""The program `goodput` in processes of its own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any


class ProgramKilled(RuntimeError):
    """The program was killed before it was done, for example by the kernel for want of memory."""


def goodput(program: str | None, *arguments: str, here: str | None = None) -> None:
    """Runs the program to its end, in the folder `here` or in the present one."""
    done = subprocess.run([found(program), *arguments], capture_output=True, text=True, cwd=here)
    check(arguments, done.returncode, done.stderr)


def check(arguments: tuple[str, ...], code: int, said: str) -> None:
    """Raises what went wrong in a process that has ended."""
    if code < 0:
        raise ProgramKilled(f"goodput {' '.join(arguments)} was killed by signal {-code}")
    if code > 0:
        raise RuntimeError(f"goodput {' '.join(arguments)} ended with {code}:\n{said[-4000:]}")


def found(program: str | None) -> str:
    """The program, where it is."""
    beside = Path(sys.executable).with_name("goodput")
    path: Any = program or os.environ.get("GOODPUT") or (beside if beside.exists() else shutil.which("goodput"))
    if not path:
        raise FileNotFoundError(
            "the program goodput is not found: install the wheel of `cargo xtask wheel full`, or give program=PATH"
        )
    return str(path)
