"""The notebooks, run cell by cell. With the variable `KEEP` set, they keep what they print now."""

import os
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
pytest.importorskip("ipykernel", reason="ipykernel is not installed")

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"


def text(cell):
    """What a cell printed and showed, as text."""
    parts = []
    for output in cell.get("outputs", []):
        parts.append(output.get("text") or output.get("data", {}).get("text/plain", ""))
    return "".join(parts)


def executed(name, folder):
    kept = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    run = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    resources = {"metadata": {"path": str(folder)}}
    # No limit: a cell takes as long as the machine needs.
    client = nbclient.NotebookClient(run, timeout=None, startup_timeout=600, kernel_name="python3", resources=resources)
    client.execute()
    if os.environ.get("KEEP"):
        for cell in run.cells:
            cell.get("metadata", {}).pop("execution", None)
        nbformat.write(run, FOLDER / f"{name}.ipynb")
    assert (FOLDER / f"{name}.ipynb").stat().st_size < 150_000
    return kept, run


def test_a_notebook_imitates_a_policy_and_exports_it(tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("matplotlib")
    _, run = executed("imitate", tmp_path)
    printed = "\n".join(map(text, run.cells))
    assert "equal decisions: True" in printed
    secs = {line.split()[0]: float(line.split()[1]) for line in printed.splitlines() if line.endswith(" s")}
    # Versions of PyTorch round differently, so that figures are compared and not texts.
    assert max(secs["teacher"], secs["net"]) < secs["chance"]


@pytest.mark.skipif("GOODPUT" not in os.environ, reason="GOODPUT, the path of the program, is not set")
def test_a_notebook_compares_policies(tmp_path, monkeypatch):
    pytest.importorskip("polars")
    pytest.importorskip("matplotlib")
    monkeypatch.setenv("PATH", f"{Path(os.environ['GOODPUT']).parent}{os.pathsep}{os.environ['PATH']}")
    kept, run = executed("compare", tmp_path)
    for before, after in zip(kept.cells, run.cells):
        if before.cell_type == "code" and "Figure" not in text(before):
            assert text(before) == text(after), before.source
