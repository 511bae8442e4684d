"""The recipes of others: spack/package.py, the container files, and the PyTorch example."""

import ast
import re
import subprocess
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Needed to build or run by all ways in, under Spack's names.
SPACK_NAMES_OF_OTHERS = {"mpi": "openmpi"}


def toolchain_libraries():
    """{Spack package: Debian package} of scripts/lib/toolchain.sh's table of headers."""
    text = (ROOT / "scripts/lib/toolchain.sh").read_text(encoding="utf-8")
    table = re.search(r"library_headers='\n(.*?)'", text, re.S).group(1)
    rows = [line.split("|") for line in table.splitlines() if line]
    return {spack: debian for _, _, debian, spack in rows}


def recipe():
    return ast.parse((ROOT / "spack/package.py").read_text(encoding="utf-8"))


def calls_of(tree, name):
    return [node for node in ast.walk(tree)
            if isinstance(node, ast.Call) and getattr(node.func, "id", None) == name]


class SpackRecipe(unittest.TestCase):
    def test_depends_on_every_library_that_setup_looks_for(self):
        named = {call.args[0].value.split("@")[0] for call in calls_of(recipe(), "depends_on")}
        named = {SPACK_NAMES_OF_OTHERS.get(name, name) for name in named}
        self.assertLessEqual(set(toolchain_libraries()), named)
        self.assertLessEqual({"cmake", "ninja"}, named)

    def test_sets_options_that_cmake_has(self):
        defined = set(re.findall(r"^option\((\w+)|^set\((LONGHAUL_\w+) \"?\w*\"? CACHE",
                                 "\n".join((ROOT / path).read_text(encoding="utf-8")
                                           for path in ("CMakeLists.txt",
                                                        "cmake/LonghaulCuda.cmake",
                                                        "cmake/LonghaulInstall.cmake")), re.M))
        defined = {name for pair in defined for name in pair if name}
        tree = recipe()
        used = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)
                and isinstance(node.value, str) and re.fullmatch(r"LONGHAUL_\w+", node.value)}
        self.assertTrue(used)
        self.assertLessEqual(used, defined)
        variants = {call.args[0].value for call in calls_of(tree, "variant")}
        self.assertEqual(variants, {"mpi", "python", "cuda", "nccl"})


class Containers(unittest.TestCase):
    def test_both_run_the_same_steps(self):
        for name in ("Dockerfile", "longhaul.def"):
            text = (ROOT / "containers" / name).read_text(encoding="utf-8")
            self.assertIn("containers/steps /usr/local", text, name)
            self.assertIn("debian:12", text, name)
        steps = (ROOT / "containers/steps").read_text(encoding="utf-8")
        self.assertIn("cmake --install", steps)

    def test_what_the_image_copies_leaves_build_trees_out(self):
        ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
        self.assertLessEqual({".git", ".venv", "build"}, set(ignored))


class PyTorchExample(unittest.TestCase):
    def test_says_what_it_lacks(self):
        """Where PyTorch is, tests/install runs it; elsewhere it must fail by name, not later."""
        python = ROOT / ".venv/bin/python"
        done = subprocess.run([python, ROOT / "scripts/examples/pytorch_pipeline.py", "--help"],
                              capture_output=True, text=True, check=False)
        if done.returncode == 0:
            self.assertIn("--schedule", done.stdout)
        else:
            self.assertIn("torch", done.stderr)


if __name__ == "__main__":
    unittest.main()
