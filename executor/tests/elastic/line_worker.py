"""An elastic job of plain Python: fits y = 3 x by gradient descent, and writes down which samples each of its members used.

    line_worker.py FOLDER STEP_SECONDS BOOT_SECONDS [divided]

With `divided` a step of one member takes STEP_SECONDS, and more members share them. It ends with the epoch in which there is a file `FOLDER/enough`.

A line `try STEP AGREEMENT IDS` goes to `FOLDER/ATTEMPT.MEMBER` before the gradients of a step are added up, and `done STEP AGREEMENT TIME`
when the step counts.
"""

import json
import os
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "clients", "python"))
import goodput_job
import goodput_members
from goodput_members import LEAVE, STOP
from goodput_samples import Samples, share

COUNT, BATCH = 240, 24


class Star:
    """Adds up lists of numbers over rank 0."""

    def __init__(self, agreement):
        self.rank, self.lines = agreement.rank, {}
        world = len(agreement.numbers)
        if world > 1 and self.rank == 0:
            with socket.socket() as server:
                server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                server.bind(("", agreement.where[1]))
                server.listen(64)
                server.settimeout(20.0)
                while len(self.lines) < world - 1:
                    line = server.accept()[0].makefile("rwb")
                    self.lines[self._read(line)] = line
        elif world > 1:
            self.lines[0] = self._connect(agreement.where).makefile("rwb")
            self._write(self.lines[0], self.rank)

    def _connect(self, where):
        given_up = time.monotonic() + 20.0
        while True:
            try:
                return socket.create_connection(where)
            except ConnectionRefusedError:
                if time.monotonic() > given_up:
                    raise
                time.sleep(0.002)

    def _write(self, line, value):
        line.write(json.dumps(value).encode() + b"\n")
        line.flush()

    def _read(self, line):
        text = line.readline()
        if not text:
            raise OSError("a member hung up")
        return json.loads(text)

    def add(self, numbers):
        if self.rank != 0:
            self._write(self.lines[0], numbers)
            return self._read(self.lines[0])
        total = [sum(column) for column in zip(numbers, *(self._read(line) for line in self.lines.values()))]
        return self._tell(total)

    def give(self, state, source):
        """Gives all members the state of rank `source`, by way of rank 0."""
        if self.rank == 0:
            return self._tell(state if source == 0 else self._read(self.lines[source]))
        if self.rank == source:
            self._write(self.lines[0], state)
        return self._read(self.lines[0])

    def _tell(self, value):
        for line in self.lines.values():
            self._write(line, value)
        return value

    def close(self):
        for line in self.lines.values():
            line.close()


def close(star):
    if star is not None:
        star.close()


def main(folder, step_s, boot_s, divided=""):
    job = goodput_job.Job()
    members = goodput_members.Members(job)
    time.sleep(boot_s)
    samples, weight, step, epochs, has_state = Samples(COUNT, seed=7), 0.0, 0, float("inf"), members.founds
    path = job.newest_checkpoint() if has_state else None
    if path:
        with open(path) as file:
            state = json.load(file)
        weight, step = state["weight"], state["step"]
        samples.load(state["samples"])

    def save():
        with job.checkpoint(step) as path, open(path, "w") as file:
            json.dump({"weight": weight, "step": step, "samples": samples.state()}, file)

    log = open(os.path.join(folder, "%d.%d" % (job.attempt, members.number)), "a", buffering=1)
    star, lost, changed = None, False, False
    while True:
        # At the end as well, so that no member stays behind by a step.
        if star is None or lost or changed or samples.epoch >= epochs:
            agreement = members.agree(step, has_state, lost)
            if agreement.outcome == STOP:
                if agreement.rank == 0:
                    save()
                sys.exit(143)
            if agreement.outcome == LEAVE:
                sys.exit(0)
            try:
                if star is None or agreement.anew:
                    star = close(star)
                    star = Star(agreement)
                if agreement.transfer:
                    own = {"weight": weight, "step": step, "epochs": epochs, "samples": samples.state()} if has_state else None
                    state = star.give(own, agreement.source)
                    weight, step, epochs, has_state = state["weight"], state["step"], state["epochs"], True
                    samples.load(state["samples"])
                    members.established(agreement)
            except (OSError, ValueError):
                star, lost = close(star), True
                continue
            lost = changed = False
            job.report(step, urgent=True, **members.reported())
            if samples.epoch >= epochs:
                break
        batch = samples.batch(BATCH)
        mine = share(batch, agreement.rank, len(agreement.numbers))
        log.write("try %d %d %s\n" % (step, agreement.number, ",".join(map(str, mine))))
        began = time.monotonic()
        time.sleep(step_s * (len(mine) / BATCH if divided else 1.0))
        gradient = sum(2 * (weight - 3.0) * (i / COUNT) ** 2 for i in mine)
        sync_began = time.monotonic()
        try:
            enough = os.path.exists(os.path.join(folder, "enough"))
            total, wanted, ends = star.add([gradient, float(members.change_wanted()), float(enough)])
        except (OSError, ValueError):
            # The others learn of the loss when this member hangs up.
            star, lost = close(star), True
            continue
        sync_s = time.monotonic() - sync_began
        weight -= 0.5 * total / len(batch)
        if ends:
            epochs = min(epochs, samples.epoch + 1)
        samples.advance(len(batch))
        log.write("done %d %d %.6f\n" % (step, agreement.number, time.time()))
        step, changed = step + 1, wanted > 0
        job.report(step, batch_size=BATCH, step_time_s=time.monotonic() - began, sync_time_s=sync_s, **members.reported())
    if members.leads:
        save()
    with open(os.path.join(folder, "weight.%d" % members.number), "w") as file:
        file.write(repr(weight))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), float(sys.argv[3]), *sys.argv[4:])
