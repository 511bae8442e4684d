"""A decoder layer of PyTorch beside ours: the same shape, bf16, on the same card.

`python3 -m longhaul.commands.torch_layer LAYERS --out DIR` reads the shape from the record of
`bench_layers --out LAYERS` and writes DIR/record.json: seconds of F (forward) and of B (backward
with the weights' gradients), run as it is ("eager") and through torch.compile ("compiled").
Needs PyTorch; uses CUDA where there is a card.
"""

import argparse
import json
import pathlib
import statistics
import sys
import time

THETA = 500_000.0


def make_layer(torch, shape, device, dtype):
    """RMSNorm, rotary attention with grouped keys, SwiGLU: products without biases, as a Llama's."""
    from torch import nn
    from torch.nn import functional

    hidden, heads, kv_heads = shape["hidden"], shape["heads"], shape["kv_heads"]
    size, tokens = hidden // heads, shape["tokens"]

    def turned(x, cosines, sines):
        first, second = x.chunk(2, dim=-1)
        return torch.cat((first * cosines - second * sines, second * cosines + first * sines), -1)

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.Parameter(torch.ones(hidden))
            self.second_norm = nn.Parameter(torch.ones(hidden))
            self.qkv = nn.Linear(hidden, (heads + 2 * kv_heads) * size, bias=False)
            self.out = nn.Linear(hidden, hidden, bias=False)
            self.gate_up = nn.Linear(hidden, 2 * shape["intermediate"], bias=False)
            self.down = nn.Linear(shape["intermediate"], hidden, bias=False)
            angles = torch.outer(torch.arange(tokens),
                                 THETA ** (-torch.arange(0, size, 2).double() / size))
            self.register_buffer("cosines", angles.cos())
            self.register_buffer("sines", angles.sin())

        def forward(self, x):
            qkv = self.qkv(functional.rms_norm(x, (hidden,), self.norm))
            qkv = qkv.view(1, tokens, heads + 2 * kv_heads, size).transpose(1, 2)
            q, k, v = qkv.split((heads, kv_heads, kv_heads), dim=1)
            q, k = (turned(part, self.cosines, self.sines) for part in (q, k))
            mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True,
                                                            enable_gqa=True)
            x = x + self.out(mixed.transpose(1, 2).reshape(1, tokens, hidden))
            gate, up = self.gate_up(functional.rms_norm(x, (hidden,), self.second_norm)).chunk(2, -1)
            return x + self.down(functional.silu(gate) * up)

    torch.manual_seed(7)
    return Layer().to(device=device, dtype=dtype)


def clock(torch, device):
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def times(torch, layer, shape, device, dtype, samples):
    """Medians of F and B: each sample is as many calls as take 20 ms, between two waits."""
    x = torch.randn(1, shape["tokens"], shape["hidden"], device=device, dtype=dtype,
                    requires_grad=True)
    dy = torch.randn(1, shape["tokens"], shape["hidden"], device=device, dtype=dtype)

    def forward():
        return layer(x)

    def both():
        layer(x).backward(dy)

    found = {}
    for name, call in (("F", forward), ("FB", both)):
        for _ in range(3):
            call()
        began = clock(torch, device)
        call()
        calls = max(1, round(0.02 / (clock(torch, device) - began)))
        seconds = []
        for _ in range(samples):
            began = clock(torch, device)
            for _ in range(calls):
                call()
            seconds.append((clock(torch, device) - began) / calls)
        found[name] = statistics.median(seconds)
    return {"F_s": found["F"], "B_s": found["FB"] - found["F"], "n": samples}


def main(arguments):
    parser = argparse.ArgumentParser(prog="torch_layer", description=__doc__.split("\n")[0])
    parser.add_argument("layers", help="directory of bench_layers' record.json")
    parser.add_argument("--out", required=True, help="directory for record.json")
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--eager-only", action="store_true", help="without torch.compile")
    options = parser.parse_args(arguments)
    try:
        import torch
    except ImportError:
        print("torch_layer: no PyTorch here", file=sys.stderr)
        return 77
    shape = json.loads((pathlib.Path(options.layers) / "record.json").read_text(encoding="utf-8"))
    shape = shape["shape"]
    device = "cuda" if torch.cuda.is_available() else "cpu"
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    layer = make_layer(torch, shape, device, dtype)
    record = {"benchmark": "torch_layer", "numbers": "measured", "torch": torch.__version__,
              "device": torch.cuda.get_device_name() if device == "cuda" else "cpu",
              "shape": shape, "ways": {}}
    out = pathlib.Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    for way in ("eager", "compiled"):
        if way == "compiled" and options.eager_only:
            continue
        run = torch.compile(layer) if way == "compiled" else layer
        record["ways"][way] = times(torch, run, shape, device, dtype, options.samples)
        (out / "record.json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
        print(way, record["ways"][way], flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
