"""The code of the book and of the README, run as a reader would."""

import importlib.util
import re
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    "docs/src/how-to/train-with-gymnasium.md",
    "docs/src/how-to/train-with-rllib.md",
    "docs/src/how-to/forecast-from-python.md",
    "docs/src/how-to/compare-a-policy-of-your-own.md",
    "python/README.md",
]
BLOCK = re.compile(r"^( *)```python\n(.*?)^ *```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = [textwrap.dedent(body) for _, body in BLOCK.findall(text)]
    assert blocks, f"{page} has no code"
    names, ran = {}, 0
    for block in blocks:
        needs = re.match(r"# needs: (\w+)", block)
        if needs and importlib.util.find_spec(needs[1]) is None:
            continue
        exec(compile(block, page, "exec"), names)
        ran += 1
    if ran == 0:
        pytest.skip(f"{page} needs packages that are not here")
