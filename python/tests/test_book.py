"""The code of the book and of the README, run as a reader would."""

import importlib.util
import re
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    "docs/src/how-to/train-with-gymnasium.md": None,
    "docs/src/how-to/train-with-rllib.md": "ray",
    "docs/src/how-to/train-with-torchrl.md": "torchrl",
    "docs/src/how-to/forecast-from-python.md": "pandas",
    "docs/src/how-to/compare-a-policy-of-your-own.md": None,
    "python/README.md": None,
}
"""Pages, with the package that every block of the page needs."""
OPTIONAL = ("sb3_contrib", "pandas", "matplotlib", "ray", "torchrl")
"""Packages that a block may need; some environment of the tests has each of them."""
BLOCK = re.compile(r"^( *)```python\n(.*?)^ *```", re.MULTILINE | re.DOTALL)


def installed(package):
    return importlib.util.find_spec(package) is not None


@pytest.mark.parametrize(("page", "needed"), PAGES.items(), ids=PAGES)
def test_the_code_of_a_page_runs(page, needed, tmp_path, monkeypatch):
    if needed and not installed(needed):
        pytest.skip(f"{page} needs {needed}")
    monkeypatch.chdir(tmp_path)
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = [textwrap.dedent(body) for _, body in BLOCK.findall(text)]
    assert blocks, f"{page} has no code"
    names, ran = {}, 0
    for block in blocks:
        if needs := re.match(r"# needs: (\w+)", block):
            assert needs[1] in OPTIONAL, f"{page}: no environment of the tests has {needs[1]}"
            if not installed(needs[1]):
                continue
        exec(compile(block, page, "exec"), names)
        ran += 1
    assert ran > 0, f"no code of {page} runs"
