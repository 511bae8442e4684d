"""The paper's models and GPUs (StellaTrain, section 5 and table 2), and batches of replicas."""

from dataclasses import dataclass

import pandas as pd

from longhaul.running import tools

TABLE2 = pd.read_csv(tools.ROOT / "results" / "papers" / "stella-table2.csv")
MODELS = tuple(dict.fromkeys(TABLE2["model"]))
NAMES = {"resnet152": "ResNet152", "vit-b-16": "ViT-B-16", "swin-b": "Swin-B"}
LAB = ("rtx4090",) * 4 + ("rtx3090",) * 2
V100 = 0.9  # of the beta of an RTX 2080 Ti: docs/scenario.md
FULL = 4    # a full memory over alpha: 256 over 64 images of ResNet50 on an RTX 4090 (section 4.2)


@dataclass(frozen=True)
class Cluster:
    """A scenario and the GPU of each of its replicas."""

    scenario: str
    gpus: tuple


EIGHT = Cluster("stella-8gpu", LAB + ("rtx2080ti",) * 2)
MULTICLOUD = Cluster("stella-multicloud", LAB + ("v100",) * 2)
ADAPTED = Cluster("stella-adapt", ("rtx4090",) * 2 + ("rtx2080ti",) * 2)
FIG14 = Cluster("stella-fig14", (("rtx4090",) * 2 + ("rtx2080ti",) * 2) * 2)


def parameters(model):
    return int(TABLE2[TABLE2["model"] == model]["parameters"].iloc[0])


def throughput(model, gpu):
    """(alpha in samples, beta in samples a second)."""
    if gpu == "v100":
        alpha, beta = throughput(model, "rtx2080ti")
        return alpha, V100 * beta
    row = TABLE2[(TABLE2["model"] == model) & (TABLE2["gpu"] == gpu)].iloc[0]
    return float(row["alpha"]), float(row["beta"])


def seconds_of(model, gpu, batch):
    """F and B of a batch (equation 2)."""
    alpha, beta = throughput(model, gpu)
    return max(batch, alpha) / beta


def saturated_seconds(model, gpus):
    """The least time in which no GPU of them is below its alpha."""
    return max(alpha / beta for alpha, beta in (throughput(model, gpu) for gpu in gpus))


def by_speed(model, gpus, seconds):
    """Samples of each GPU in as many seconds."""
    return [max(1, int(throughput(model, gpu)[1] * seconds + 1e-9)) for gpu in gpus]


def equal(batch):
    """As many samples in all, divided equally."""
    return [max(1, round(sum(batch) / len(batch)))] * len(batch)


def spread(samples, replicas):
    """As many samples, one apart at most."""
    return [samples // replicas + (place < samples % replicas) for place in range(replicas)]


def divided(model, gpus, samples):
    """Of each GPU as `train.hetero` divides them: in proportion to beta, largest remainders first."""
    speeds = [throughput(model, gpu)[1] for gpu in gpus]
    shares = [samples * speed / sum(speeds) for speed in speeds]
    batch = [max(1, int(share + 1e-9)) for share in shares]
    while sum(batch) < samples:
        batch[max(range(len(batch)), key=lambda place: shares[place] - batch[place])] += 1
    return batch


def slowest(model, gpus, batch):
    return max(seconds_of(model, gpu, own) for gpu, own in zip(gpus, batch))


def least_rate(model, bandwidth, seconds):
    """Equation 6: the compression rate at which gradients of 4 bytes pass in so many seconds."""
    return max(0.0, 1 - bandwidth / (32 * parameters(model)) * seconds)
