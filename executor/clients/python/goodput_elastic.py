"""Data-parallel training with PyTorch that grows and shrinks without a stop, from a program of one process.

    import goodput_elastic

    trainer = goodput_elastic.Trainer(model, optimizer, dataset, batch_size=64)
    for inputs, targets in trainer.batches(epochs=10):
        trainer.backward(loss(model(inputs), targets))

or, where that is all there is to it: `goodput_elastic.run(model, dataset, loss, optimizer, batch_size=64, epochs=10)`. Under node agents,
`goodput live submit --elastic --gpus 1 --max 8 -- python3 train.py` starts the program once for each accelerator. New processes import,
build their model and warm up while the others train; then all form a new process group between two steps, and those that joined are given
the parameters, the state of the optimiser and the position in the data. Elsewhere the program trains alone, or under torchrun.

What stays the same at any size: the order of the samples, the total batch size (each process takes its part, in several passes where
`max_local` asks for it) and so the learning rate. With `max_batch_size` the total batch grows with the size, and the learning rate by
`lr_rule`. PyTorch 1.13 or newer; gloo on processors, nccl on GPUs.
"""

import datetime
import io
import os
import socket
import sys
import time

import torch
import torch.distributed as dist

import goodput_job
from goodput_job import learning_rate_factor
from goodput_members import LEAVE, STOP, Members
from goodput_samples import Samples, passes, share

# Seconds that a group may take to form, and a step to be added up, before a member counts as lost.
_FORM_S, _STEP_S = 30, 1800


class Trainer:
    """A model in training, on as many processes as the job has at the moment.

    `max_local`: most samples of one pass. `max_batch_size`: the total batch is `batch_size` for each process, up to this number; where it
    is left out, the total batch is always `batch_size`. `lr_rule`: see `learning_rate_factor`. `checkpoint_every_s`: between two
    checkpoints beside those that are asked for. `sample_log`: folder in which each process writes the samples of its steps.
    """

    def __init__(self, model, optimizer, dataset, batch_size, max_batch_size=None, max_local=None, lr_rule="ada_scale", warmup_steps=0.0,
                 seed=0, checkpoint_every_s=600.0, collate=None, sample_log=None):
        self.device = next(model.parameters()).device
        self.model, self.optimizer, self.dataset = model, optimizer, dataset
        self.batch_size, self.max_batch_size, self.max_local = batch_size, max_batch_size or batch_size, max_local
        self.lr_rule, self.warmup_steps = lr_rule, warmup_steps
        learning_rate_factor(lr_rule, 1.0)
        self.samples = Samples(len(dataset), seed)
        self.step, self.progress, self.trained = 0, 0.0, 0
        self.job = goodput_job.Job()
        self.members = Members(self.job)
        self._adam = "adam" in type(optimizer).__name__.lower()
        self._collate = collate or torch.utils.data.default_collate
        self._checkpoint_every_s, self._saved_at = checkpoint_every_s, time.monotonic()
        self._statistics = goodput_job.GradientStatistics()
        self._agreement, self._group, self._store = None, False, None
        self._changed, self._lost, self._has_state = False, False, self.members.founds
        self._log = None
        if sample_log:
            os.makedirs(sample_log, exist_ok=True)
            name = "%d.%d" % (self.job.attempt, self.members.number)
            self._log = open(os.path.join(sample_log, name), "a", buffering=1)
        path = self.job.newest_checkpoint() if self._has_state else None
        if path:
            try:
                with open(path, "rb") as file:
                    state = self._read(file)
            except Exception:  # The next attempt goes on from the checkpoint before.
                self.job.damaged(path)
                raise
            self._load(state)

    @property
    def leads(self):
        """Whether this process is the one that writes and prints for all."""
        return self.members.leads

    @property
    def world(self):
        """Processes that train together."""
        return len(self._agreement.numbers) if self._agreement else 1

    def batches(self, epochs):
        """Batches of this process until the job has gone through the data `epochs` times; each is to be given to `backward`."""
        while not self._meet(epochs):
            began = time.monotonic()
            self._total = min(self.max_batch_size, self.batch_size * self.world)
            batch = self.samples.batch(self._total)
            mine = share(batch, self._agreement.rank, self.world)
            self._size, self._parts, self._loss, self._first = len(batch), passes(mine, self.max_local), 0.0, None
            self._write("try %d %d %s" % (self.step, self._agreement.number, ",".join(map(str, mine))))
            self.optimizer.zero_grad()
            for at, part in enumerate(self._parts):
                self._pass = (at, len(part))
                inputs = self._collate([self.dataset[index] for index in part])
                yield [tensor.to(self.device) for tensor in inputs]
            self._add_up(batch, mine, began)

    def backward(self, loss):
        """Takes the mean loss of a batch that `batches` gave."""
        at, size = self._pass
        (loss * (size / self._size)).backward()
        self._loss += loss.item() * size / self._size
        if at == 0 and self.world == 1 and len(self._parts) > 1:
            # Two passes tell of the noise where there are no other processes.
            self._first = self._gradient() * (self._size / size)

    # A step

    def _gradient(self):
        grads = [p.grad if p.grad is not None else torch.zeros_like(p) for p in self._parameters()]
        return torch.cat([grad.detach().reshape(-1).float() for grad in grads])

    def _parameters(self):
        return [parameter for group in self.optimizer.param_groups for parameter in group["params"]]

    def _add_up(self, batch, mine, began):
        """Ends a step: adds up the gradients of all, learns from them, and hears whether a member wants a change."""
        local = self._gradient()
        part = float(local.dot(local)) * (len(batch) / len(mine)) ** 2 if mine else 0.0
        told = torch.tensor([float(self.members.change_wanted()), self._loss, part], device=local.device)
        total, sync_began = torch.cat([local, told]), time.monotonic()
        if self._group:
            try:
                dist.all_reduce(total)
                if self.device.type == "cuda":
                    torch.cuda.synchronize()
            except RuntimeError as error:
                # Nothing of the step counts here. The others learn of the loss when this member hangs up.
                self._lost, self._error = True, error
                self._disband()
                return
        sync_s = time.monotonic() - sync_began
        changed, loss, parts = (float(value) for value in total[-3:])
        gradient = total[:-3]
        self._measure(gradient, parts, len(batch))
        at = 0
        for parameter in self._parameters():
            parameter.grad = gradient[at : at + parameter.numel()].view_as(parameter).to(parameter.dtype)
            at += parameter.numel()
        self._learn(len(batch))
        self.samples.advance(len(batch))
        self._write("done %d %d %.6f %.6f" % (self.step, self._agreement.number, time.time(), loss))
        self.step, self.trained, self._changed = self.step + 1, self.trained + len(batch), changed > 0
        local_batch = max((len(part) for part in self._parts), default=0)
        self._report(loss=loss, batch_size=len(batch), atomic_batch=local_batch, accumulation=max(len(self._parts) - 1, 0),
                     step_time_s=time.monotonic() - began, sync_time_s=sync_s, **self._statistics.fields())

    def _measure(self, gradient, parts, size):
        norm = float(gradient.dot(gradient))
        if self.world > 1:
            self._statistics.update(self.world, size / self.world, parts / self.world, norm, self.batch_size)
        elif self._first is not None:
            small = self._size / len(self._parts)
            # Of equal passes the mean of squared norms follows from the first one and the whole only in expectation.
            self._statistics.update(len(self._parts), small, float(self._first.dot(self._first)), norm, self.batch_size)

    def _learn(self, size):
        scale = max(self._total / self.batch_size, 1.0)
        known = self._statistics.fields()
        stats = (known["grad_sqr"], known["grad_var"]) if known else None
        factor = learning_rate_factor(self.lr_rule, scale, stats, self.progress, self.warmup_steps) if scale > 1.0 else 1.0
        self.progress += learning_rate_factor("ada_scale", scale, stats)
        before = [group["lr"] for group in self.optimizer.param_groups]
        for group in self.optimizer.param_groups:
            group["lr"] *= factor**0.5 if self._adam else factor
        self.optimizer.step()
        for group, lr in zip(self.optimizer.param_groups, before):
            group["lr"] = lr

    def _report(self, urgent=False, **fields):
        epoch = self.samples.epoch + self.samples.cursor / max(self.samples.count, 1)
        self.job.report(self.step, urgent, samples=self.trained, epoch=epoch, **dict(fields, **self.members.reported()))

    # Between two steps

    def _meet(self, epochs):
        """Agrees with the other processes where there is a reason to; True when the training is over."""
        while True:
            ends = self._has_state and self.samples.epoch >= epochs
            # At the end all meet once more, so that no process stays behind by a step.
            if self._agreement is None or self._changed or self._lost or ends:
                agreement = self.members.agree(self.step, self._has_state, self._lost)
                if agreement.outcome == STOP and not (ends and not self.members.managed):
                    if agreement.rank == 0:
                        self.save()
                    self._disband()
                    sys.exit(goodput_job.PREEMPTED)
                if agreement.outcome == LEAVE:
                    self._disband()
                    sys.exit(0)
                try:
                    self._join(agreement)
                except (RuntimeError, ValueError, OSError) as error:
                    self._lost, self._error = True, error
                    self._disband()
                    continue
                self._changed = self._lost = False
                self._report(urgent=True)
                if self.samples.epoch >= epochs:
                    if self.leads:
                        self.save()
                    self._disband()
                    return True
            due = time.monotonic() - self._saved_at > self._checkpoint_every_s
            if self.leads and self.job.managed and (due or self.job.checkpoint_wanted()):
                self.save()
            return False

    def _join(self, agreement):
        world = len(agreement.numbers)
        if self._agreement is None or agreement.anew:
            self._disband()
            if world > 1:
                host, port = agreement.where
                if agreement.rank > 0:
                    _await(host, port)
                timeout = datetime.timedelta(seconds=_FORM_S)
                self._store = dist.TCPStore(host, port, world, agreement.rank == 0, timeout=timeout)
                backend = "nccl" if self.device.type == "cuda" else "gloo"
                dist.init_process_group(backend, store=self._store, rank=agreement.rank, world_size=world,
                                        timeout=datetime.timedelta(seconds=_STEP_S))
                self._group = True
        if agreement.transfer:
            self._give(agreement)
            self.members.established(agreement)
            self._has_state = True
        self._agreement = agreement

    def _give(self, agreement):
        """Gives all processes the state of rank `source`."""
        gives = agreement.rank == agreement.source
        data = bytearray(self._state() if gives else b"")
        length = torch.tensor([len(data)], device=self.device)
        dist.broadcast(length, agreement.source)
        state = torch.frombuffer(data, dtype=torch.uint8) if gives else torch.empty(int(length), dtype=torch.uint8)
        state = state.to(self.device)
        dist.broadcast(state, agreement.source)
        if not gives:
            self._load(self._read(io.BytesIO(state.cpu().numpy().tobytes())))

    def _disband(self):
        if self._group:
            dist.destroy_process_group()
        self._group, self._store = False, None

    # Checkpoints

    def _state(self):
        written = io.BytesIO()
        statistics = self._statistics.__dict__
        torch.save({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "samples": self.samples.state(),
                    "step": self.step, "progress": self.progress, "trained": self.trained, "statistics": statistics}, written)
        return written.getvalue()

    def _read(self, file):
        # PyTorch 1.13 reads no plain numbers with weights_only. The file is this job's own, and so are the members that give the state.
        return torch.load(file, map_location=self.device, weights_only=False)

    def _load(self, state):
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.samples.load(state["samples"])
        self.step, self.progress, self.trained = state["step"], state["progress"], state["trained"]
        self._statistics.__dict__.update(state["statistics"])

    def save(self):
        """Writes a checkpoint, where there is a folder for it."""
        if self.job.checkpoint_dir:
            with self.job.checkpoint(self.step) as path, open(path, "wb") as file:
                file.write(self._state())
        self._saved_at = time.monotonic()

    def _write(self, line):
        if self._log:
            self._log.write(line + "\n")


def _await(host, port):
    """Waits until rank 0 listens: PyTorch would look again only after a second."""
    given_up = time.monotonic() + _FORM_S
    while True:
        try:
            return socket.create_connection((host, port), timeout=1.0).close()
        except OSError:
            if time.monotonic() > given_up:
                raise
            time.sleep(0.002)


def run(model, dataset, loss, optimizer, batch_size, epochs, **options):
    """Trains `model` on pairs of `dataset` and returns its `Trainer`; `options` are those of the trainer."""
    trainer = Trainer(model, optimizer, dataset, batch_size, **options)
    model.train()
    for inputs, targets in trainer.batches(epochs):
        trainer.backward(loss(model(inputs), targets))
    return trainer
