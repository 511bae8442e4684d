"""One rank of PyTorch's DistributedDataParallel over gloo, on a model of the same shapes as bench_train
has. Run by a Python with torch, which needs nothing else of Longhaul:

    python ddp_worker.py '{"rank": 0, "ranks": 4, "address": "10.83.0.1", "port": 29400, ..}'

Rank 0 prints {"torch", "parameters", "hook", "losses": [..], "ends_s": [..]}: the loss of each
iteration, the mean over all ranks, and when rank 0 had made each step."""

import json
import math
import os
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))

    def forward(self, x):
        if hasattr(functional, "rms_norm"):
            return functional.rms_norm(x, self.gain.shape, self.gain, 1e-5)
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.gain


def linear(inputs, outputs, bound=0.02 * math.sqrt(3)):
    made = nn.Linear(inputs, outputs, bias=False)
    nn.init.uniform_(made.weight, -bound, bound)
    return made


class Decoder(nn.Module):
    """docs/layers.md, "The model": grouped-query attention with turned pairs, SwiGLU, no bias."""

    def __init__(self, model):
        super().__init__()
        hidden, self.heads = model["hidden"], model["heads"]
        self.kv_heads, self.size = model["kv_heads"], hidden // model["heads"]
        kv = self.kv_heads * self.size
        joined = 0.02 * math.sqrt(3) / math.sqrt(2 * (model["layers"] - 2))
        self.first, self.second = Norm(hidden), Norm(hidden)
        self.qkv = linear(hidden, hidden + 2 * kv)
        self.out = linear(hidden, hidden, joined)
        self.gate_up = linear(hidden, 2 * model["intermediate"])
        self.down = linear(model["intermediate"], hidden, joined)
        exponents = -2 * torch.arange(self.size // 2, dtype=torch.float64) / self.size
        angles = torch.outer(torch.arange(model["sequence"], dtype=torch.float64),
                             500_000 ** exponents)
        self.register_buffer("cosine", torch.cos(angles).float(), persistent=False)
        self.register_buffer("sine", torch.sin(angles).float(), persistent=False)

    def turned(self, x):
        a, b = x.chunk(2, dim=-1)
        return torch.cat((a * self.cosine - b * self.sine, b * self.cosine + a * self.sine), dim=-1)

    def attended(self, q, k, v):
        if self.kv_heads != self.heads:
            k, v = (each.repeat_interleave(self.heads // self.kv_heads, dim=1) for each in (k, v))
        if hasattr(functional, "scaled_dot_product_attention"):
            return functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        scores = q @ k.transpose(-1, -2) / math.sqrt(self.size)
        length = scores.shape[-1]
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        return scores.masked_fill(later, -math.inf).softmax(-1) @ v

    def forward(self, x):
        batch, length, hidden = x.shape
        kv = self.kv_heads * self.size
        q, k, v = (each.view(batch, length, -1, self.size).transpose(1, 2)
                   for each in self.qkv(self.first(x)).split((hidden, kv, kv), dim=-1))
        attended = self.attended(self.turned(q), self.turned(k), v)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, hidden))
        gate, up = self.gate_up(self.second(x)).chunk(2, dim=-1)
        return x + self.down(functional.silu(gate) * up)


class Model(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.table = nn.Embedding(model["vocabulary"], model["hidden"])
        bound = 0.02 * math.sqrt(3)
        nn.init.uniform_(self.table.weight, -bound, bound)
        self.decoders = nn.Sequential(*(Decoder(model) for _ in range(model["layers"] - 2)))
        self.norm = Norm(model["hidden"])
        self.head = linear(model["hidden"], model["vocabulary"])

    def forward(self, tokens, targets):
        logits = self.head(self.norm(self.decoders(self.table(tokens))))
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def windows(text, task):
    """Batches of this rank without end: windows of the text at multiples of the sequence, without its
    last tenth, drawn anew each epoch in an order that all ranks share."""
    length, batch = task["model"]["sequence"], task["batch"]
    held_in = torch.tensor(list(text[:len(text) - len(text) // 10]), dtype=torch.long)
    starts = torch.arange(0, len(held_in) - length, length)
    order = torch.Generator().manual_seed(task["seed"])
    each = batch * task["ranks"]
    while True:
        shuffled = starts[torch.randperm(len(starts), generator=order)]
        for first in range(0, len(shuffled) - each + 1, each):
            mine = shuffled[first + batch * task["rank"]:first + batch * (task["rank"] + 1)]
            places = mine[:, None] + torch.arange(length)
            yield held_in[places], held_in[places + 1]


def optimizer_of(task, parameters):
    rate = task["learning_rate"]
    if task["optimizer"] == "adamw":
        return torch.optim.AdamW(parameters, lr=rate, weight_decay=0, foreach=True)
    momentum = 0 if task["optimizer"] == "sgd" else 0.9
    return torch.optim.SGD(parameters, lr=rate, momentum=momentum, foreach=True,
                           nesterov=task["optimizer"] == "nesterov")


def wrapped_in_ddp(model, buckets):
    """Gradients in about so many buckets, each summed while the rest of the backward goes on; 0: in
    PyTorch's own, of which the first has 1 MiB and later ones 25."""
    if not buckets:
        return DistributedDataParallel(model, gradient_as_bucket_view=True, broadcast_buffers=False)
    size = max(1, 4 * sum(each.numel() for each in model.parameters()) // buckets)
    dist._DEFAULT_FIRST_BUCKET_BYTES = size  # no option sets the first one's
    return DistributedDataParallel(model, gradient_as_bucket_view=True, broadcast_buffers=False,
                                   bucket_cap_mb=size / 2 ** 20)


def trained(task):
    torch.manual_seed(task["seed"])
    model = Model(task["model"])
    wrapped = wrapped_in_ddp(model, task["buckets"])
    if task["hook"] == "fp16":
        from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
        wrapped.register_comm_hook(None, fp16_compress_hook)
    optimizer = optimizer_of(task, wrapped.parameters())
    batches = windows(open(task["text"], "rb").read(), task)
    losses, ends = [], []
    dist.barrier()
    began = time.monotonic()
    for _ in range(task["iterations"]):
        loss = wrapped(*next(batches))
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        ends.append(time.monotonic() - began)
    mean = torch.stack(losses)
    dist.all_reduce(mean)
    return {"torch": torch.__version__, "hook": task["hook"],
            "parameters": sum(each.numel() for each in model.parameters()),
            "losses": (mean / task["ranks"]).tolist(), "ends_s": ends}


def main():
    task = json.loads(sys.argv[1])
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR=task["address"], MASTER_PORT=str(task["port"]))
    if task.get("interface"):
        os.environ["GLOO_SOCKET_IFNAME"] = task["interface"]
    dist.init_process_group("gloo", rank=task["rank"], world_size=task["ranks"],
                            timeout=timedelta(seconds=task["timeout_s"]))
    answer = trained(task)
    dist.destroy_process_group()
    if task["rank"] == 0:
        print(json.dumps(answer))


if __name__ == "__main__":
    main()
