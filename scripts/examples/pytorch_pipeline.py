"""Feeds a schedule of Longhaul to PyTorch's pipeline runtime, and checks what it computes.

    torchrun --nproc-per-node 4 scripts/examples/pytorch_pipeline.py SCENARIO --schedule zb-h1

One process for each stage of the scenario (--set parallel.stages=4 --set parallel.microbatches=8
make it small). Every process makes the same schedule, hands it over in the format that
torch.distributed.pipelining reads, and runs one step of a toy model: a linear layer and a tanh for
each chunk. Loss and gradients are then held against the same model without a pipeline. Needs
PyTorch, and the compiled part of the package longhaul (docs/install.md); runs on CPUs (gloo).
"""

import argparse
import os
import sys
import tempfile

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime

import longhaul

WIDTH = 32       # of the toy model
ROWS = 4         # of one microbatch
TOLERANCE = 1e-5  # relative, per tensor: fp32, sums in another order


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scenario")
    parser.add_argument("--schedule", default="zb-h1", help="a name, or a CSV file")
    parser.add_argument("--set", action="append", default=[], metavar="PATH=VALUE")
    return parser.parse_args()


def schedule_of(options, scenario):
    """Searches are bounded by moves, so that every process finds the same schedule."""
    if options.schedule.endswith(".csv"):
        with open(options.schedule, encoding="utf-8") as file:
            return longhaul.Schedule.from_csv(file.read())
    return longhaul.make_schedule(options.schedule, scenario, moves=10_000, threads=1,
                                  placement="ud,loop,wave")


def chunk_model(chunk):
    torch.manual_seed(1000 + chunk)
    return torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.Tanh())


def loss_of(output, target):
    return torch.nn.functional.mse_loss(output, target)


def run_pipeline(schedule, rank, inputs, targets):
    """Returns this rank's chunks with their gradients, and the mean loss where it is known."""
    mine = [c for c, device in enumerate(schedule.device_of_chunk) if device == rank]
    models = {chunk: chunk_model(chunk) for chunk in mine}
    device = torch.device("cpu")
    stages = [PipelineStage(models[chunk], chunk, schedule.chunks, device,
                            input_args=(torch.empty(ROWS, WIDTH),)) for chunk in mine]
    runtime = _PipelineScheduleRuntime(stages, schedule.microbatches, loss_fn=loss_of)
    with tempfile.NamedTemporaryFile("w", suffix=".csv", encoding="utf-8") as file:
        file.write(schedule.pytorch_csv())
        file.flush()
        runtime._load_csv(file.name)  # PyTorch has no public name for it yet
    losses = []
    first, last = 0 in mine, schedule.chunks - 1 in mine
    runtime.step(*([inputs] if first else []), **({"target": targets, "losses": losses}
                                                  if last else {}))
    return models, torch.stack(losses).mean().item() if losses else None


def reference(schedule, inputs, targets):
    """The same model in one piece: PyTorch's runtime averages gradients over microbatches."""
    models = [chunk_model(chunk) for chunk in range(schedule.chunks)]
    total = 0.0
    for x, y in zip(inputs.split(ROWS), targets.split(ROWS)):
        for model in models:
            x = model(x)
        loss = loss_of(x, y) / schedule.microbatches
        loss.backward()
        total += loss.item()
    return models, total


def wrong_tensors(models, expected):
    wrong = []
    for chunk, model in models.items():
        for (name, got), right in zip(model.named_parameters(), expected[chunk].parameters()):
            error = ((got.grad - right.grad).norm() / right.grad.norm()).item()
            if not error <= TOLERANCE:
                wrong.append(f"chunk {chunk} {name}: off by {error:.1e}")
    return wrong


def main():
    options = arguments()
    scenario = longhaul.Scenario.load(options.scenario, options.set)
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    schedule = schedule_of(options, scenario)
    if ranks != schedule.devices:
        sys.exit(f"schedule {schedule.name} has {schedule.devices} devices, but {ranks} processes "
                 f"are running. Start torchrun with --nproc-per-node {schedule.devices}.")
    torch.manual_seed(1)
    inputs = torch.randn(schedule.microbatches * ROWS, WIDTH)
    targets = torch.randn(schedule.microbatches * ROWS, WIDTH)
    models, loss = run_pipeline(schedule, rank, inputs, targets)
    expected, right_loss = reference(schedule, inputs, targets)
    wrong = wrong_tensors(models, expected)
    if loss is not None and not abs(loss - right_loss) <= TOLERANCE * abs(right_loss):
        wrong.append(f"loss {loss}, not {right_loss}")
    found = [None] * ranks
    dist.all_gather_object(found, wrong)
    if rank == 0:
        predicted = longhaul.simulate(schedule, scenario).makespan_ns / 1e9
        print(f"{schedule.name} on {scenario.name}: predicted {predicted:.3f} s an iteration")
        for each, tensors in enumerate(found):
            print(f"rank {each}: " + ("; ".join(tensors) or "gradients equal the reference's"))
    dist.destroy_process_group()
    sys.exit(1 if any(found) else 0)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    try:
        main()
    except longhaul.Error as error:
        sys.exit(str(error))
