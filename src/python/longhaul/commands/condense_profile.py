"""Condenses measured operators and all-reduces of a GPU to what src/profile/gpus/ holds: the
constants of the law of products (src/profile/matmul_law.hpp), a thinned table beside it, and
all-reduce times by ranks and size."""

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from longhaul.errors import Failure, guarded

PRODUCTS = 400
SIZES_MIB = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
SMALL = 0.03  # errors below it count by their square


def law(constants, sides):
    """ns of products, by law: launch_ns, flops_per_ns, pad_m, pad_n, pad_k."""
    launch, rate, *pads = constants
    time = 2 * sides.prod(axis=1) / rate
    for side, pad in zip(sides.T, pads):
        time = time * (1 + pad / side)
    return launch + time


def fitted_law(sides, times):
    """Constants of the least absolute errors of logarithms, by reweighted steps of Gauss and
    Newton."""
    point = np.log([5e3, 250e3, 50.0, 100.0, 100.0])
    eye = np.eye(len(point))

    def errors(at):
        return np.log(law(np.exp(at), sides) / times)

    for _ in range(60):
        here = errors(point)
        weights = 1 / np.maximum(abs(here), SMALL)
        slopes = np.array([(errors(point + 1e-4 * way) - here) / 1e-4 for way in eye]).T
        matrix = slopes.T @ (weights[:, None] * slopes) + 1e-3 * eye
        point -= np.clip(np.linalg.solve(matrix, slopes.T @ (weights * here)), -0.5, 0.5)
    return np.exp(point)


def thinned(table, count):
    """The first row, then again and again the one farthest from all that were taken, in powers
    of two."""
    places = np.log2(table[["m", "n", "k"]].to_numpy(float))
    taken = [0]
    distances = ((places - places[0]) ** 2).sum(axis=1)
    while len(taken) < min(count, len(table)):
        taken.append(int(distances.argmax()))
        distances = np.minimum(distances, ((places - places[taken[-1]]) ** 2).sum(axis=1))
    return table.iloc[sorted(taken)]


def products_of(operators, gpu):
    """Median times by shape."""
    rows = operators[(operators.gpu == gpu) & operators.m.notna()]
    if rows.empty:
        known = ", ".join(sorted(set(operators.gpu)))
        raise Failure(f"no products of a {gpu} in the table (it has {known}). Name one of these "
                      "with --gpu.")
    return rows.groupby(["m", "n", "k"], as_index=False).median_ns.median()


def all_reduce_text(collectives, gpu):
    rows = collectives[(collectives.gpu == gpu) & (collectives.nodes == 1)]
    rows = rows[(rows.size_bytes / 2**20).isin(SIZES_MIB)]
    rows = rows.sort_values(["ranks", "size_bytes"])
    return "".join(f"{row.ranks},{row.size_bytes},{row.in_place_ns}\n" for row in rows.itertuples())


def condensed(arguments):
    operators = pd.read_csv(arguments.operators)
    measured = products_of(operators, arguments.gpu)
    every = operators[(operators.gpu == arguments.gpu) & operators.m.notna()]
    sides = every[["m", "n", "k"]].to_numpy(float)
    constants = fitted_law(sides, every.median_ns.to_numpy(float))
    table = thinned(measured, PRODUCTS)
    lines = "".join(f"{row.m:.0f},{row.n:.0f},{row.k:.0f},{row.median_ns:.0f}\n"
                    for row in table.itertuples())
    collectives = pd.read_csv(arguments.collectives)
    launch, rate, *pads = constants
    return ("# launch_ns, flops_per_ns, pad_m, pad_n, pad_k\n"
            f"matmul_law = [{launch:.1f}, {rate:.1f}, {pads[0]:.2f}, {pads[1]:.2f}, "
            f"{pads[2]:.2f}]\n"
            f'matmul = """\nm,n,k,ns\n{lines}"""\n'
            f'all_reduce = """\nranks,size_bytes,ns\n{all_reduce_text(collectives, arguments.links)}"""\n')


def main():
    parser = argparse.ArgumentParser(prog="condense-profile", description=__doc__)
    parser.add_argument("operators", type=Path, help="gpu, m, n, k, median_ns (.csv)")
    parser.add_argument("collectives", type=Path,
                        help="gpu, ranks, nodes, size_bytes, in_place_ns (.csv)")
    parser.add_argument("--gpu", required=True, help="whose products")
    parser.add_argument("--links", help="whose all-reduces (default: the GPU's)")
    arguments = parser.parse_args()
    arguments.links = arguments.links or arguments.gpu
    print(condensed(arguments), end="")
    return 0


if __name__ == "__main__":
    sys.exit(guarded(main, "condense-profile"))
