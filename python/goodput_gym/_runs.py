"""Results of `goodput eval` and `goodput train`, read into data frames."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Run:
    """Directory of a run."""

    path: Path
    """The directory."""
    summary: dict[str, Any]
    """Contents of summary.json: means, intervals and tests of every policy and metric."""

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables: `runs` has a row for each policy, workload and seed, `jobs` one for each job."""
        return tuple(sorted(file.stem for file in self.path.glob("*.parquet")))

    def pandas(self, table: str) -> Any:
        """A table as a pandas.DataFrame. Needs pandas and pyarrow."""
        file = self._file(table)
        import pandas

        return pandas.read_parquet(file)

    def polars(self, table: str) -> Any:
        """A table as a polars.DataFrame. Needs polars."""
        file = self._file(table)
        import polars

        return polars.read_parquet(file)

    def _file(self, table: str) -> Path:
        file = self.path / f"{table}.parquet"
        if not file.exists():
            raise KeyError(f"{self.path} has no table {table!r}; it has {', '.join(self.tables) or 'none'}")
        return file


def read_run(path: str | os.PathLike[str]) -> Run:
    """Opens the directory of a run: `read_run("runs/quickstart/1").pandas("runs")`."""
    folder = Path(path)
    summary = folder / "summary.json"
    if not summary.exists():
        raise FileNotFoundError(f"{summary}: no such file; `goodput eval --run-dir DIR` writes it at its end")
    return Run(folder, json.loads(summary.read_text(encoding="utf-8")))
