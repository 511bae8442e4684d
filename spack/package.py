# Copyright and licence: those of the checkout that this file came with.
# A recipe for Spack. Until it is in Spack's own repository, make one of your own around it:
#
#   spack repo create ~/longhaul-spack longhaul
#   mkdir -p ~/longhaul-spack/packages/longhaul
#   cp spack/package.py ~/longhaul-spack/packages/longhaul/
#   spack repo add ~/longhaul-spack
#   spack install longhaul          # or, from a checkout: spack dev-build longhaul@main
#
# tests/scripts/test_packaging.py holds its dependencies against scripts/lib/toolchain.sh.

from spack.package import *


class Longhaul(CMakePackage):
    """MPI benchmark suite for training one language model across several datacenters: predicts
    pipeline schedules between sites, runs them on ranks with emulated links, and compares."""

    # Spack needs a place to fetch from, and this checkout does not know its own: give it with
    # spack dev-build, or put the URL of your clone here.
    version("main", branch="main")

    variant("mpi", default=True, description="Build the runtime and the MPI benchmarks")
    variant("python", default=True, description="Build the Python module")
    variant("cuda", default=False, description="Run ranks' blocks on GPUs")
    variant("nccl", default=False, description="Carry payloads of GPUs by NCCL", when="+cuda")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.22:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconf", type="build")

    depends_on("fmt")
    depends_on("cli11")
    depends_on("tomlplusplus")
    depends_on("nlohmann-json")
    depends_on("hdf5")
    depends_on("benchmark")
    depends_on("googletest", type=("build", "test"))
    depends_on("mpi", when="+mpi")
    depends_on("hwloc", when="+mpi")
    depends_on("openblas", when="+mpi")
    depends_on("openssl", when="+mpi")
    depends_on("cuda@12:", when="+cuda")
    depends_on("nccl", when="+nccl")

    extends("python", when="+python")
    depends_on("python@3.10:", type=("build", "run"), when="+python")
    depends_on("py-pybind11@2.10:", type="build", when="+python")
    depends_on("py-numpy", type="run", when="+python")
    depends_on("py-h5py", type="run", when="+python")
    depends_on("py-matplotlib", type="run", when="+python")
    depends_on("py-pandas", type="run", when="+python")
    depends_on("py-tomli", type="run", when="+python ^python@:3.10")

    generator("ninja")

    def cmake_args(self):
        args = [
            self.define_from_variant("LONGHAUL_WITH_MPI", "mpi"),
            self.define_from_variant("LONGHAUL_WITH_PYTHON", "python"),
            self.define("LONGHAUL_WITH_CUDA", "ON" if "+cuda" in self.spec else "OFF"),
            self.define("LONGHAUL_WITH_NCCL", "ON" if "+nccl" in self.spec else "OFF"),
            self.define("LONGHAUL_WITH_TESTS", self.run_tests),
            self.define("LONGHAUL_WERROR", False),
        ]
        if self.spec.satisfies("+python"):
            args += [
                self.define("Python3_EXECUTABLE", self.spec["python"].command.path),
                self.define("LONGHAUL_PYTHON_DIR", python_platlib),
            ]
        return args
