"""A PyTorch training script that a scheduler may stop, move and resize. Lines marked `# goodput` are what makes it so.

Run it as it is, or give it to the scheduler: `goodput live submit ... -- torchrun --nnodes=$NNODES ... train_example.py`. Without PyTorch it says so
and trains a line by hand instead, so that the protocol can be tried anywhere.
"""

import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import goodput_job  # goodput

STEPS = int(os.environ.get("STEPS", "300"))
BATCH = 128


def train_with_torch(job):
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    step = 0
    path = job.newest_checkpoint()  # goodput
    if path:  # goodput
        state = torch.load(path, map_location=device)  # goodput
        model.load_state_dict(state["model"]), optimizer.load_state_dict(state["optimizer"])  # goodput
        step = state["step"]  # goodput
    target = torch.randn(32, 1, generator=torch.Generator().manual_seed(0)).to(device)
    while step < STEPS:
        began = time.monotonic()
        inputs = torch.randn(BATCH, 32, device=device)
        loss = torch.nn.functional.mse_loss(model(inputs), inputs @ target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        job.report(step, samples=step * BATCH, batch_size=BATCH, step_time_s=time.monotonic() - began, loss=loss.item())  # goodput
        if job.checkpoint_wanted() or job.stop_wanted() or step == STEPS:  # goodput
            with job.checkpoint(step) as path:  # goodput
                torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, path)
        job.exit_if_stopped()  # goodput


def train_by_hand(job):
    """The same without PyTorch: fits y = 3 x by gradient descent, slowly."""
    step, weight = 0, 0.0
    path = job.newest_checkpoint()
    if path:
        try:
            with open(path) as file:
                state = json.load(file)
        except ValueError:
            job.damaged(path)
            sys.exit(1)
        step, weight = state["step"], state["weight"]
    while step < STEPS:
        began = time.monotonic()
        gradient = 2 * (weight - 3.0)
        weight -= 0.01 * gradient
        step += 1
        time.sleep(0.01)
        job.report(step, samples=step * BATCH, batch_size=BATCH, step_time_s=time.monotonic() - began, loss=(weight - 3.0) ** 2)
        if job.checkpoint_wanted() or job.stop_wanted() or step == STEPS:
            with job.checkpoint(step) as path, open(path, "w") as file:
                json.dump({"step": step, "weight": weight}, file)
        job.exit_if_stopped()


if __name__ == "__main__":
    job = goodput_job.Job()  # goodput
    try:
        import torch  # noqa: F401
    except ImportError:
        print("PyTorch is not installed: fitting a line by hand instead")
        train_by_hand(job)
    else:
        train_with_torch(job)
