"""Pipelines on four nodes: launchers, modules, a container, exit codes, cancellation."""

from cluster import ROOT
from jobs import BINARIES, LONG, JobTest, processes_of


class Jobs(JobTest):
    def run_on_four_nodes(self, **site):
        number = self.pipeline("--iterations", 3, "--set", "run.time_scale=0.02",
                               scenario="m70-2dc", site=self.site(**site))
        job = self.assert_ended(number, "COMPLETED", "0:0")
        self.assertEqual((job["NumNodes"], job["NumTasks"]), ("4", "8"))
        self.assert_valid(3)
        return self.cluster.log(number, "pipeline")

    def test_mpirun_on_four_nodes(self):
        said = self.run_on_four_nodes(launcher="mpirun")
        self.assertIn("on 4 nodes (n[1-4]), 8 ranks at most, start 1", said)
        self.assertIn("scripts/mpi -n 8 ", said)

    def test_srun_with_pmix_on_four_nodes(self):
        self.skip_without_pmix()
        said = self.run_on_four_nodes(launcher="srun --mpi=pmix")
        self.assertIn("launcher  srun --mpi=pmix", said)

    def test_modules_and_container(self):
        """Words of a container keep their spaces, every program goes through it."""
        inside = self.cluster.directory / "inside the container"
        site = self.site(more=(
            "module() { echo \"module $*\"; }\nLONGHAUL_MODULES=(gcc/12 hdf5)\n"
            f"LONGHAUL_CONTAINER=(sh -c 'echo \"$0\" >>\"{inside}\"; exec \"$0\" \"$@\"')\n"
            f"LONGHAUL_CONTAINER_BIN='{BINARIES}'\n"))
        number = self.pipeline("--iterations", 2, site=site)
        self.assert_ended(number, "COMPLETED", "0:0")
        self.assertIn("module load gcc/12 hdf5", self.cluster.log(number, "pipeline"))
        checked, ranks = 1, 4  # its options before it is queued, then the run
        self.assertEqual(inside.read_text().splitlines(),
                         [str(BINARIES / "bench_pipeline")] * (checked + ranks))
        self.assert_valid(2)

    def test_exit_codes_pass_through(self):
        """1: the answer is no; 2: bad input; also where sbatch is called without slurm/submit."""
        wrong = self.cluster.directory / "wrong.csv"
        wrong.write_text("0F0,0B0\n1F0,1B0\n2F0,2B0\n3B0,3F0\n")
        refused = self.pipeline(schedule=wrong)
        done = self.cluster.call("sbatch", "--parsable", "--chdir", self.cluster.directory,
                                 ROOT / "slurm" / "pipeline.sbatch", "nowhere.toml",
                                 LONGHAUL_ROOT=str(ROOT), LONGHAUL_SITE=str(self.site()))
        missing = done.stdout.strip()
        self.assert_ended(refused, "FAILED", "1:0")
        self.assert_ended(missing, "FAILED", "2:0")
        self.assertIn("no scenario nowhere.toml", self.cluster.log(missing, "pipeline"))

    def cancel(self, launcher):
        number = self.pipeline("--iterations", LONG, site=self.site(launcher=launcher))
        self.cluster.until((self.out / "run.h5").exists, "the run to begin")
        self.assertGreater(len(processes_of(self.out)), 4)
        self.cluster.call("scancel", number)
        job = self.assert_ended(number, "CANCELLED", "143:0")
        self.assertEqual(job["Restarts"], "0")
        self.cluster.until(lambda: not processes_of(self.out), "its processes to end")
        self.assertIn("stays so", self.cluster.log(number, "pipeline"))

    def test_cancelled_with_mpirun(self):
        self.cancel("mpirun")

    def test_cancelled_with_srun(self):
        self.skip_without_pmix()
        self.cancel("srun --mpi=pmix")

    def finished_iterations(self):
        try:
            return (self.out / "journal.jsonl").read_text().count('"iteration":')
        except OSError:
            return 0

    def test_goes_on_after_the_last_finished_iteration(self):
        """The SIGTERM is what --signal=B:TERM@60 sends. A complete run is not run again."""
        number = self.pipeline("--iterations", 80)
        self.cluster.until(lambda: self.finished_iterations() >= 10, "ten iterations")
        self.cluster.call("scancel", "--signal=TERM", "--batch", number)
        job = self.assert_ended(number, "COMPLETED", "0:0")
        self.assertEqual(job["Restarts"], "1")
        self.assertIn("back to the queue", self.cluster.log(number, "pipeline"))
        parts = self.assert_valid(80)["environment"]["parts"]
        self.assertEqual(parts[0]["finished_before"], [])
        self.assertGreaterEqual(parts[1]["finished_before"][0], 8)
        self.assertLess(parts[1]["finished_before"][0], 80)
        before = (self.out / "trace.h5").stat().st_mtime_ns
        self.assert_ended(self.pipeline("--iterations", 80), "COMPLETED", "0:0")
        self.assertEqual((self.out / "trace.h5").stat().st_mtime_ns, before)
