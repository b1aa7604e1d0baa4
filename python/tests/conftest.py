"""Helpers of the tests: allowed actions, and episodes played with them."""

import numpy as np
import pytest

SETS = {"environment.slots": 8, "workload.synthetic.diurnal.jobs": 12}
"""A workload of twelve jobs, so that an episode ends within a few hundred actions."""


def allowed(mask, step):
    """An allowed action for each row, which changes from step to step."""
    rows = np.atleast_2d(mask)
    picks = [np.flatnonzero(row) for row in rows]
    return np.array([pick[(7 * step + env) % len(pick)] for env, pick in enumerate(picks)])


@pytest.fixture
def small():
    """Keyword arguments of a small environment."""
    return {"config": "quickstart", "sets": SETS}
