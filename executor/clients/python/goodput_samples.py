"""Order of the samples of a training job, which is the same however many processes share the work and however often they change.

Every epoch goes through a permutation of all samples that follows from the seed and the number of the epoch. A cursor says how far the
job is; a step takes the next batch and divides it among the members. So no sample is lost or used twice when members join, leave or are
lost, and a job that goes on from a checkpoint sees the samples it would have seen. Standard library only, Python 3.8 or newer.
"""

import random


class Samples:
    """Position in the order of `count` samples."""

    def __init__(self, count, seed=0):
        self.count = count
        self.seed = seed
        self.epoch = 0
        self.cursor = 0
        self._order = (None, None)

    def batch(self, size):
        """The next samples, at most `size`: the last batch of an epoch holds what is left of it."""
        if self._order[0] != self.epoch:
            order = list(range(self.count))
            random.Random("%d %d" % (self.seed, self.epoch)).shuffle(order)
            self._order = (self.epoch, order)
        return self._order[1][self.cursor : self.cursor + size]

    def advance(self, taken):
        """Goes on by a batch of so many samples, which have been learned from."""
        self.cursor += taken
        if self.cursor >= self.count:
            self.epoch, self.cursor = self.epoch + 1, 0

    def state(self):
        """For a checkpoint."""
        return {"count": self.count, "seed": self.seed, "epoch": self.epoch, "cursor": self.cursor}

    def load(self, state):
        """From a checkpoint."""
        if state["count"] != self.count:
            raise ValueError("the checkpoint is of %d samples, and there are %d" % (state["count"], self.count))
        self.seed, self.epoch, self.cursor = state["seed"], state["epoch"], state["cursor"]


def share(batch, rank, world):
    """Part of a batch for one of `world` members; the sizes of the parts differ by one at most."""
    return batch[len(batch) * rank // world : len(batch) * (rank + 1) // world]


def passes(samples, most=None):
    """The samples of a member in passes of about equal size and at most `most` samples (gradient accumulation)."""
    if not samples:
        return []
    count = -(-len(samples) // (most or len(samples)))
    size = -(-len(samples) // count)
    return [samples[at : at + size] for at in range(0, len(samples), size)]
