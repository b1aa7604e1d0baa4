"""Job protocol v1 for Python: makes a training script elastic. One file, standard library only (Python 3.8 or newer).

    import goodput_job

    job = goodput_job.Job()                       # reads the environment; does nothing outside a scheduler
    step = load(job.newest_checkpoint())          # None at the first start
    while step < last:
        train_one_step(); step += 1
        job.report(step, batch_size=128, step_time_s=0.2, loss=loss)
        if job.checkpoint_wanted() or job.stop_wanted():
            with job.checkpoint(step) as path:    # written aside, forced to disk, renamed; the last two are kept
                save(path)
        job.exit_if_stopped()                     # exit 143: nothing is held against the job

Signals: SIGTERM asks for a checkpoint and exit 143 within SCHED_GRACE_S seconds, SIGUSR1 for a checkpoint. Both only set a flag here, so
training code is never interrupted in the middle of a step. In multi-process training call stop_wanted() on all ranks and combine the answers
(an all-reduce of the maximum) before acting, so that all leave at the same step.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import ssl
import sys
import time
import urllib.error
import urllib.request

PREEMPTED = 143
TRY_AGAIN = 75

_CHECKPOINT = re.compile(r"^step-(\d+)$")


class Refused(Exception):
    """The agent does not believe a report: this process belongs to an attempt that is over."""


class Job:
    """This process as part of an attempt of a job."""

    def __init__(self, environ=None, keep=2, report_every_s=1.0):
        env = os.environ if environ is None else environ
        number = lambda key, otherwise: int(env.get(key) or otherwise)
        self.id = env.get("SCHED_JOB_ID")
        self.attempt = number("SCHED_ATTEMPT", 0)
        self.grace_s = number("SCHED_GRACE_S", 60)
        self.rank = number("NODE_RANK", 0)
        self.nodes = number("NNODES", 1)
        self.world_size = number("WORLD_SIZE", 1)
        self.checkpoint_dir = env.get("SCHED_CHECKPOINT_DIR")
        self._fence = env.get("SCHED_FENCE")
        self._socket = env.get("SCHED_SOCKET")
        self._url = env.get("SCHED_URL")
        # Certificate of the authority that signed the one of the address, where that is not a public one.
        self._ca = env.get("SCHED_CA")
        self._tls = None
        self._stream = None
        self._keep = keep
        self._report_every_s = report_every_s
        self._reported = float("-inf")
        self._stop = False
        self._save = False
        self._saved = {}
        if self.managed:
            signal.signal(signal.SIGTERM, self._on_term)
            signal.signal(signal.SIGUSR1, self._on_usr1)

    @property
    def managed(self):
        """Whether a scheduler started this process."""
        return self.id is not None

    def _on_term(self, _signal, _frame):
        self._stop = True

    def _on_usr1(self, _signal, _frame):
        self._save = True

    def stop_wanted(self):
        """Whether the job is to write a checkpoint and leave."""
        return self._stop

    def checkpoint_wanted(self):
        """Whether the job is to write a checkpoint and go on; asks once for each request."""
        wanted, self._save = self._save, False
        return wanted

    def exit_if_stopped(self):
        """Leaves if the job is to; call it after the checkpoint is written."""
        if self._stop:
            sys.exit(PREEMPTED)

    # Checkpoints

    def _checkpoints(self):
        names = os.listdir(self.checkpoint_dir) if self.checkpoint_dir and os.path.isdir(self.checkpoint_dir) else []
        found = [(int(match.group(1)), name) for name in names for match in [_CHECKPOINT.match(name)] if match]
        return [(step, os.path.join(self.checkpoint_dir, name)) for step, name in sorted(found)]

    def newest_checkpoint(self):
        """Path of the newest complete checkpoint, or None. If it cannot be read, give it to `damaged` and exit 1."""
        found = self._checkpoints()
        return found[-1][1] if found else None

    def damaged(self, path):
        """Puts a checkpoint aside, so that the next attempt goes on from the one before."""
        os.rename(path, path + ".damaged")

    @contextlib.contextmanager
    def checkpoint(self, step):
        """Gives the path to write a checkpoint to, a file or a folder; it counts only when the block ends without an error. Rank 0 calls it."""
        began = time.monotonic()
        final = os.path.join(self.checkpoint_dir or ".", "step-%d" % step)
        aside = final + ".new"
        _remove(aside)
        yield aside
        for path in _files(aside):
            with open(path, "rb") as file:
                os.fsync(file.fileno())
        _remove(final)
        os.rename(aside, final)
        folder = os.open(os.path.dirname(final) or ".", os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        for _, old in self._checkpoints()[: -self._keep]:
            _remove(old)
        self._saved = {"ckpt_step": step, "ckpt_time_s": time.monotonic() - began}

    # Reports

    def report(self, step, urgent=False, **fields):
        """Says how far the job is, at most once a second unless it is urgent; True if it was said. Rank 0 calls it.

        Fields: samples, epoch, batch_size, atomic_batch, accumulation, step_time_s, sync_time_s, grad_sqr, grad_var, loss, serving, members.
        An agent that is away is no error, training goes on; Refused is raised where this attempt is over.
        """
        now = time.monotonic()
        due = urgent or now - self._reported >= self._report_every_s
        if self.rank != 0 or not (self._socket or self._url) or not due:
            return False
        self._reported = now
        report = {"fence": self._fence, "attempt": self.attempt, "step": step}
        report.update(self._saved)
        report.update(fields)
        try:
            answer = (self._say if self._socket else self._put)(json.dumps(report))
        except (OSError, ValueError):
            self._stream = None
            return False
        if answer.get("status") == 409:
            raise Refused(answer.get("error"))
        return bool(answer.get("ok"))

    def _say(self, line):
        if self._stream is None:
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            connection.settimeout(2.0)
            connection.connect(self._socket)
            self._stream = connection.makefile("rw")
            connection.close()  # the stream keeps it open
        self._stream.write(line + "\n")
        self._stream.flush()
        answer = self._stream.readline()
        if not answer:
            raise OSError("the agent hung up")
        return json.loads(answer)

    def _put(self, line):
        if self._tls is None and self._url.startswith("https:"):
            self._tls = ssl.create_default_context(cafile=self._ca)  # OSError: no such file, and training goes on
        url = "%s/v1/jobs/%s/report" % (self._url, self.id)
        headers = {"Content-Type": "application/json"}
        try:
            request = urllib.request.Request(url, line.encode(), headers, method="PUT")
            urllib.request.urlopen(request, timeout=2.0, context=self._tls).close()
        except urllib.error.HTTPError as error:
            return {"status": error.code, "error": error.read().decode(errors="replace")}
        return {"ok": True}


class GradientStatistics:
    """Squared norm and variance of the gradient, from the gradients of two or more replicas or accumulation passes (McCandlish et al. 2018, appendix A).

    Of `count` gradients, each of `small` samples: `mean_small` is the mean of their squared norms, `norm_large` the squared norm of their mean.
    """

    def __init__(self, smoothing=0.9):
        self._smoothing = smoothing
        self._weight = 0.0
        self._sqr = 0.0
        self._var = 0.0

    def update(self, count, small, mean_small, norm_large, scale=1):
        """Takes one step in; `scale` is the initial batch size that grad_var is wanted for."""
        if count < 2:
            return
        large = count * small
        sqr = (large * norm_large - small * mean_small) / (large - small)
        var = (mean_small - norm_large) / (1.0 / small - 1.0 / large) / scale
        keep = self._smoothing
        self._weight = keep * self._weight + (1 - keep)
        self._sqr = keep * self._sqr + (1 - keep) * sqr
        self._var = keep * self._var + (1 - keep) * var

    def fields(self):
        """For Job.report."""
        if self._weight == 0.0:
            return {}
        return {"grad_sqr": max(self._sqr / self._weight, 0.0), "grad_var": max(self._var / self._weight, 0.0)}


# AdaptDL's: with a smaller variance no scale would seem to help.
_LEAST_VARIANCE = 1e-6


def learning_rate_factor(rule, scale, stats=None, progress=0.0, warmup_steps=0.0):
    """Factor on the learning rate of plain SGD at `scale` times the initial batch size; the rules of goodput's model by their names.

    `stats` is a pair of squared norm and variance of the gradient, for `ada_scale`; before any is measured, the factor is 1. `progress`
    counts steps in units of the initial batch size, for the warm-up of `legw`. For Adam and its like take the square root.
    """
    if rule == "linear":
        return scale
    if rule == "square_root":
        return scale**0.5
    if rule == "ada_scale":
        if stats is None:
            return 1.0
        sqr, var = max(stats[0], 0.0), max(stats[1], _LEAST_VARIANCE)
        return (var + sqr) / (var / scale + sqr)
    if rule == "legw":
        steps = warmup_steps * scale
        return scale**0.5 * (progress / steps if progress < steps else 1.0)
    raise ValueError("lr_rule %r: expected ada_scale, square_root, linear or legw" % (rule,))


def _files(path):
    if os.path.isfile(path):
        return [path]
    return [os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names]


def _remove(path):
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.remove(path)
