"""slurm/submit and the jobs of slurm/, as far as they need no Slurm: the words that they hand to
sbatch, that they print with DRY_RUN, and that they refuse. A program in place of sbatch writes down
its words."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("LONGHAUL_BIN", ROOT / "build/bin")) / "bench_pipeline"
SBATCH = """#!/bin/bash
printf '%s\\n' "$@" >"$SBATCH_WORDS"
[[ $* != *--partition=nowhere* ]] || { echo 'sbatch: error: invalid partition' >&2; exit 1; }
echo 42
"""
# What bench_prefill says where one rank runs.
NEEDS_14 = "echo 'longhaul: scenario bubbletea needs 14 ranks (12 that train, 2 that serve), but 1 are " \
           "running. Start it.' >&2; exit 2"


class SlurmTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = Path(temporary.name)
        self.words = self.directory / "words"
        (self.directory / "bin").mkdir()
        for name, text in (("sbatch", SBATCH), ("bench_pipeline", "#!/bin/bash\nexit 3\n")):
            (self.directory / "bin" / name).write_text(text)
            (self.directory / "bin" / name).chmod(0o755)

    def call(self, *command, site="", **environment):
        (self.directory / "site.env").write_text(site)
        done = subprocess.run(
            [str(word) for word in command], cwd=self.directory, capture_output=True, text=True,
            check=False, stdin=subprocess.DEVNULL,
            env={"PATH": f"{self.directory}/bin:{os.environ['PATH']}", "SBATCH_WORDS":
                 str(self.words), "LONGHAUL_SITE": str(self.directory / "site.env"),
                 "LONGHAUL_BIN": str(self.directory / "bin"), **environment})
        return done.returncode, done.stdout, done.stderr


class Submit(SlurmTest):
    def submit(self, *words, **named):
        return self.call(ROOT / "slurm" / "submit", *words, **named)

    def handed(self):
        return self.words.read_text().splitlines()

    def test_a_site_becomes_options(self):
        code, said, _ = self.submit(
            "--nodes", "4", "pipeline", "m70-2dc", "--schedule", "zbv,best", "--out", "a b",
            site="LONGHAUL_PARTITION='big one'\nLONGHAUL_ACCOUNT=me\nLONGHAUL_QOS=low\n"
                 "LONGHAUL_CONSTRAINT='ib&gpu'\nLONGHAUL_TIME=1-02:30\nLONGHAUL_GPUS_PER_NODE=4\n"
                 "LONGHAUL_CPUS_PER_RANK=3\nLONGHAUL_SBATCH=(--exclusive '--comment=a b')\n")
        self.assertEqual(code, 0)
        self.assertEqual(said.splitlines(),
                         ["job 42", "log longhaul-pipeline-42*.log", "results a b"])
        self.assertEqual(self.handed(), [
            "--parsable", "--nodes=4", "--ntasks=8", "--ntasks-per-node=4", "--cpus-per-task=3",
            "--partition=big one", "--account=me", "--qos=low", "--constraint=ib&gpu",
            "--time=1-02:30", "--gpus-per-node=4", "--exclusive", "--comment=a b",
            str(ROOT / "slurm" / "pipeline.sbatch"),
            str(ROOT / "benchmarks" / "scenarios" / "m70-2dc.toml"), "--schedule", "zbv,best",
            "--out", "a b"])

    def test_as_many_nodes_as_the_scenario_needs(self):
        self.submit("--ranks-per-node", "3", "pipeline", "m70-2dc")
        self.assertEqual(self.handed()[1:4], ["--nodes=3", "--ntasks=8", "--ntasks-per-node=3"])
        code, _, said = self.submit("--ranks-per-node", "3", "--nodes", "2", "pipeline", "m70-2dc",
                                    "--set", "parallel.replicas=2")
        self.assertEqual(code, 2)
        self.assertIn("needs 16 ranks: 6 nodes of 3, not 2. Give --nodes 6", said)

    def test_collectives_on_the_nodes_that_their_ranks_need(self):
        code, said, error = self.submit("--nodes", "4", "collectives", "collectives-2dc", "--emulate",
                                        "off", "--kind", "all-reduce", "--bytes", "1MiB")
        self.assertEqual((code, error), (0, ""))
        self.assertEqual(said.splitlines(), ["job 42", "log longhaul-collectives-42*.log",
                                             f"results {ROOT}/runs/collectives-42"])
        self.assertEqual(self.handed(), [
            "--parsable", "--nodes=4", "--ntasks=8", "--ntasks-per-node=2",
            str(ROOT / "slurm" / "collectives.sbatch"),
            str(ROOT / "benchmarks" / "scenarios" / "collectives-2dc.toml"), "--emulate", "off",
            "--kind", "all-reduce", "--bytes", "1MiB"])

    def test_emulated_collectives_run_on_several_nodes(self):
        code, said, _ = self.submit("--nodes", "2", "collectives", "collectives-2dc", "--kind",
                                    "all-reduce", "--bytes", "1MiB", DRY_RUN="1")
        self.assertEqual(code, 0)
        self.assertIn("on 2 nodes", said)
        self.assertNotIn("--emulate off", said)

    def test_the_steps_of_a_job_of_collectives(self):
        code, said, _ = self.submit("--nodes", "1", "collectives", "collectives-2dc", "--kind",
                                    "all-reduce", "--bytes", "1MiB", DRY_RUN="1")
        self.assertEqual(code, 0)
        self.assertIn("-n 8", said)
        self.assertRegex(said, r"bench_collectives \S+collectives-2dc.toml --kind all-reduce "
                               r"--bytes 1MiB --out \S+/runs/collectives-JOB")

    def test_training_on_the_nodes_that_its_replicas_need(self):
        code, said, _ = self.submit("--nodes", "1", "train", "train-2dc", "--methods", "none,stella")
        self.assertEqual(code, 0)
        self.assertEqual(said.splitlines(), ["job 42", "log longhaul-train-42*.log",
                                             f"results {ROOT}/runs/train-42"])
        self.assertEqual(self.handed(), [
            "--parsable", "--nodes=1", "--ntasks=4", "--ntasks-per-node=4",
            str(ROOT / "slurm" / "train.sbatch"),
            str(ROOT / "benchmarks" / "scenarios" / "train-2dc.toml"), "--methods", "none,stella"])

    def prefill(self, *words, says="exit 3", **named):
        program = self.directory / "bin" / "bench_prefill"
        program.write_text(f"#!/bin/bash\n{says}\n")
        program.chmod(0o755)
        return self.submit("--nodes", "2", "prefill", "bubbletea", "--requests", "r.csv", *words,
                           **named)

    def test_prefill_on_the_ranks_that_the_program_names(self):
        self.assertEqual(self.prefill(says=NEEDS_14)[0], 0)
        self.assertEqual(self.handed(), [
            "--parsable", "--nodes=2", "--ntasks=14", "--ntasks-per-node=7",
            str(ROOT / "slurm" / "prefill.sbatch"),
            str(ROOT / "benchmarks" / "scenarios" / "bubbletea.toml"), "--requests", "r.csv"])
        code, said, _ = self.prefill("--pairs", "3", says=NEEDS_14, DRY_RUN="1")
        self.assertEqual(code, 0)
        self.assertRegex(said, r"-n 14 \S+/bench_prefill \S+bubbletea.toml --requests r.csv --pairs 3 "
                               r"--out \S+/runs/prefill-JOB --resume")

    def test_requeued_prefill_goes_on_where_it_can(self):
        again = {"DRY_RUN": "1", "SLURM_RESTART_COUNT": "2"}
        for words, end in (((), "--resume"), (("--controller", "planned"), "--resume"),
                           (("--controller", "live"), "-start3"), (("--controller=live",), "-start3"),
                           (("--compute", "real"), "-start3")):
            with self.subTest(words=words):
                code, said, _ = self.prefill(*words, says=NEEDS_14, **again)
                self.assertEqual(code, 0)
                command = next(line.rstrip() for line in said.splitlines() if "bench_prefill" in line)
                self.assertTrue(command.endswith(end), command)
                self.assertEqual("-start3" in command, end == "-start3")

    def test_prefill_where_the_program_cannot_be_asked_or_refuses(self):
        self.assertEqual(self.prefill()[0], 0)  # 12 that train, a controller, three datacenters
        self.assertIn("--ntasks=16", self.handed())
        code, _, said = self.prefill(says="echo 'longhaul: --pairs: too many.' >&2; exit 2")
        self.assertEqual(code, 2)
        self.assertIn("bench_prefill refuses these options: --pairs: too many.", said)

    def test_gpus_as_a_generic_resource(self):
        self.submit("pipeline", "m70-2dc",
                    site="LONGHAUL_GPUS_PER_NODE=2\nLONGHAUL_GPU_OPTION=gres\n")
        self.assertIn("--gres=gpu:2", self.handed())
        self.assertIn("--nodes=4", self.handed())

    def test_an_array_over_the_lines_of_a_file(self):
        (self.directory / "sweep.txt").write_text("# none\n--scenario m8-2dc\n\n  --scenario m70-4stage\n")
        self.submit("--nodes", "2", "--ranks-per-node", "2", "--at-once", "1", "sweep", "sweep.txt")
        self.assertIn("--array=1-2%1", self.handed())
        self.assertEqual(self.handed()[-1], str((self.directory / "sweep.txt").resolve()))

    def test_ranks_of_a_node_follow_from_nodes(self):
        for words, asked in (
                (("--nodes", "4", "pipeline", "m70-2dc"), (4, 8, 2)),
                (("--nodes", "3", "pipeline", "m70-2dc"), (3, 8, 3)),
                (("--nodes", "4", "pipeline", "m70-2dc", "--set", "parallel.replicas=2"), (4, 16, 4)),
                (("--nodes", "4", "figures", "crosspipe", "--measure"), (4, 16, 4)),
                (("--nodes", "2", "sweep", "sweep.txt"), (2, 8, 4))):
            (self.directory / "sweep.txt").write_text("--scenario m8-2dc\n--scenario m70-2dc\n")
            self.assertEqual(self.submit(*words)[0], 0, words)
            self.assertEqual(self.handed()[1:4], [
                f"--{name}={value}" for name, value in
                zip(("nodes", "ntasks", "ntasks-per-node"), asked)])

    def refusing(self, said, code=2):
        """bench_pipeline ends with `code` and these words, and writes down its own."""
        program = self.directory / "bin" / "bench_pipeline"
        program.write_text(f"""#!/bin/bash
if [[ $1 == --version ]]; then echo '1 (0)'; exit; fi
printf '%s\\n' "$@" >>"{self.directory}/asked"
echo 'longhaul: {said}' >&2
exit {code}
""")

    def test_options_are_checked_before_the_queue(self):
        self.refusing("bench_pipeline: no such thing. `bench_pipeline --help` lists them.")
        (self.directory / "sweep.txt").write_text("# none\n--scenario m8-2dc --extra=--wrong\n")
        node = ("--nodes", "4")
        for words, place in ((("pipeline", "m70-2dc", "--wrong", "--device", "cuda"), ""),
                             (("sweep", "sweep.txt"), "sweep.txt: task 1: ")):
            code, _, said = self.submit(*node, *words)
            self.assertEqual((code, self.words.exists()), (2, False), said)
            self.assertIn(f"{place}bench_pipeline refuses", said)
            self.assertTrue(said.endswith(": no such thing.\n"), said)
            asked = (self.directory / "asked").read_text().split("\n")
            self.assertIn("--wrong", asked)
            self.assertIn("--print-map", asked)
            self.assertNotIn("--device", asked, "is the compute node's")
        for code in (0, 1, 3, 139):  # it cannot be asked here, or agrees
            self.refusing("MPI does not start on a login node", code)
            self.assertEqual(self.submit(*node, "pipeline", "m70-2dc")[0], 0)

    def test_real_layers_cannot_go_on(self):
        real = ("--nodes", "4", "pipeline", "tiny-real", "--compute", "real")
        for fake in (lambda: None, lambda: self.refusing("--resume cannot go on with --compute real")):
            fake()
            code, _, said = self.submit(*real)
            self.assertEqual((code, self.words.exists()), (2, False), said)
            self.assertIn("Add --trace off", said)
        self.refusing("", 0)  # a program that keeps weights
        self.assertEqual(self.submit(*real)[0], 0)
        self.refusing("MPI does not start on a login node", 3)
        self.assertEqual(self.submit(*real, "--trace", "off")[0], 0)

    @unittest.skipUnless(PROGRAM.is_file(), "bench_pipeline is not built")
    def test_the_program_itself_is_asked(self):
        named = {"LONGHAUL_BIN": str(PROGRAM.parent)}
        for options, why in ((("--schedule", "zbq"), 'There is no schedule "zbq"'),
                             (("--iteratoins", "3"), "--iteratoins"),
                             (("--set", "link.latncy=5ms"), 'Did you mean "latency"'),
                             (("--compute", "real"), "Add --trace off")):
            code, _, said = self.submit("--nodes", "4", "pipeline", "m70-2dc", *options, **named)
            self.assertEqual((code, self.words.exists()), (2, False), said)
            self.assertIn(why, said)
            self.assertEqual(1, said.count("\n"), said)
        self.assertEqual(self.submit("--nodes", "4", "pipeline", "m70-2dc", "--schedule", "static",
                                     **named)[0], 0)

    @unittest.skipUnless(PROGRAM.is_file(), "bench_pipeline is not built")
    def test_names_of_options_of_other_programs(self):
        named = {"LONGHAUL_BIN": str(PROGRAM.parent)}
        for job in (("collectives", "collectives-2dc"), ("train", "train-2dc")):
            code, _, said = self.submit("--nodes", "4", *job, "--sede", "1", **named)
            self.assertEqual((code, self.words.exists()), (2, False), said)
            self.assertEqual(said.split("refuses")[0], f"submit: bench_{job[0]} ")
            self.assertIn('refuses these options: unknown option "--sede".', said)
        self.assertEqual(self.submit("--nodes", "4", "collectives", "collectives-2dc", "--kind",
                                     "all-reduce", "--bytes", "1MB", **named)[0], 0)

    def test_dry_run_submits_nothing(self):
        code, said, _ = self.submit("--ranks-per-node", "2", "pipeline", "m70-2dc", "--set", "a=b c",
                                    "--out", "new", DRY_RUN="1")
        self.assertEqual(code, 0)
        self.assertFalse(self.words.exists())
        self.assertTrue(said.startswith("sbatch --parsable --nodes=4 --ntasks=8 "))
        self.assertIn("scripts/mpi -n 8 ", said)
        self.assertIn(r"--set a=b\ c --out ", said)
        self.assertFalse((self.directory / "new").exists())

    def test_every_figure_of_a_paper(self):
        code, said, _ = self.submit("--nodes", "2", "--ranks-per-node", "4", "--dry-run", "figures",
                                    "atlas", "--measure", "--minutes", "5")
        self.assertEqual(code, 0)
        commands = {line.split("scripts/figure ")[1].split()[0]: line
                    for line in said.splitlines() if "scripts/figure " in line}
        self.assertTrue({"atlas-table1", "atlas-fig9", "atlas-fig12"} <= set(commands))
        self.assertFalse([name for name in commands if not name.startswith("atlas-")])
        self.assertIn("--measure --minutes 5", commands["atlas-fig9"])
        self.assertNotIn("--measure", commands["atlas-fig12"])  # is simulated always
        self.assertNotIn("--measure", commands["atlas-tcp"])    # needs root

    def test_wrong_sites(self):
        for site, text in (
                ("LONGHAUL_PARTITON=x", "site.env:1: unknown name LONGHAUL_PARTITON"),
                ("a=1\n export LONGHAUL_MODULE=x", "site.env:2: unknown name LONGHAUL_MODULE"),
                ("LONGHAUL_LAUNCHER=aprun", "LONGHAUL_LAUNCHER=aprun (neither mpirun nor srun)"),
                ("LONGHAUL_LAUNCHER=", "LONGHAUL_LAUNCHER= (neither"),
                ("LONGHAUL_RANKS_PER_NODE=two", "LONGHAUL_RANKS_PER_NODE=two (not a whole number"),
                ("LONGHAUL_RANKS_PER_NODE=0", "not a whole number of at least 1"),
                ("LONGHAUL_TIME='1 day'", "LONGHAUL_TIME=1 day (not a time"),
                ("LONGHAUL_GPU_OPTION=gpus", "LONGHAUL_GPU_OPTION=gpus (neither"),
                ("LONGHAUL_ACCOUNT='", "site.env is not bash ("),
                ("", "how many ranks does a node take?")):
            code, _, said = self.submit("pipeline", "m70-2dc", site=site)
            self.assertEqual(code, 2, site)
            self.assertIn(text, said)
            self.assertFalse(self.words.exists())
        code, _, said = self.submit("--site", "nowhere.env", "pipeline", "m70-2dc")
        self.assertEqual(code, 2)
        self.assertIn("no site file nowhere.env", said)

    def test_bad_input(self):
        rank = ("--ranks-per-node", "2")
        for name, text in (("empty", "# x\n"), ("a", "--scenario nowhere\n"), ("c", "--no-such\n"),
                           ("b", "--scenario m8-2dc\n--scenario m8-2dc --cells x\n")):
            (self.directory / f"{name}.txt").write_text(text)
        for words, text in (
                ((), "no job given"), (("pipelines", "x"), "no job 'pipelines'"),
                (("pipeline",), "nothing to run given"),
                ((*rank, "pipeline", "nowhere"), "no scenario nowhere"),
                ((*rank, "--nodes", "2", "sweep", "nowhere.txt"), "no sweep file nowhere.txt"),
                ((*rank, "--nodes", "2", "sweep", "empty.txt"), "no line that says what to run"),
                (("--nodes", "2", "sweep", "a.txt"), "task 1: no scenario nowhere"),
                (("--nodes", "2", "sweep", "b.txt"), "task 2: no cells \"x\""),
                (("--nodes", "2", "sweep", "c.txt"), "task 1: scripts/sweep: error: "),
                ((*rank, "figures", "atlas"), "how many nodes?"),
                ((*rank, "--nodes", "x", "figures", "atlas"), "--nodes x: not a whole number"),
                ((*rank, "--time", "soon", "pipeline", "m70-2dc"), "--time soon: not a time"),
                (("--no-such", "pipeline"), "unknown option '--no-such'"),
                (("--dry-run", *rank, "--nodes", "1", "figures", "pipedream"),
                 "no figures of 'pipedream'")):
            code, _, said = self.submit(*words)
            self.assertEqual((code, self.words.exists()), (2, False), words)
            self.assertIn(text, said)

    def test_sbatch_refuses(self):
        code, _, said = self.submit("--ranks-per-node", "2", "pipeline", "m70-2dc",
                                    site="LONGHAUL_PARTITION=nowhere")
        self.assertEqual(code, 3)
        self.assertIn("invalid partition", said)
        self.assertIn("site.env with sinfo", said)


class Jobs(SlurmTest):
    """The sbatch files, started as Slurm would start them."""

    def job(self, kind, *words, **environment):
        copy = self.directory / "slurm_script"
        shutil.copy(ROOT / "slurm" / f"{kind}.sbatch", copy)
        return self.call(copy, *words, **{"SLURM_SUBMIT_DIR": str(ROOT), "SLURM_JOB_ID": "7",
                                          **environment})

    def test_submitted_from_elsewhere(self):
        code, _, said = self.job("pipeline", "m70-2dc", SLURM_SUBMIT_DIR=str(self.directory))
        self.assertEqual(code, 2)
        self.assertIn("is not Longhaul's directory", said)

    def test_too_small_a_job(self):
        code, _, said = self.job("pipeline", "m70-2dc", SLURM_NTASKS="6", SLURM_JOB_NUM_NODES="3")
        self.assertEqual(code, 2)
        self.assertIn("needs 8 ranks, and this job has room for 6 (3 nodes)", said)

    def test_what_cannot_be_resumed_begins_anew(self):
        out = self.directory / "out"
        for options, resumed in (((), True), (("--trace", "on"), True), (("--trace", "off"), False),
                                 (("--adaptive",), False), (("--change=2:a=b",), False)):
            for start in (1, 2):
                code, said, _ = self.job("pipeline", "m70-2dc", *options, "--out", out, DRY_RUN="1",
                                         SLURM_RESTART_COUNT=str(start - 1))
                command = next(line for line in said.splitlines() if ": command " in line)
                self.assertEqual((code, "--resume" in command), (0, resumed), options)
                again = start == 2 and not resumed
                self.assertIn(f"--out {out}-start2 " if again else f"--out {out} ", command)

    def test_training_goes_on_where_it_was_begun(self):
        out = self.directory / "out"
        for given, kept in (((), "--checkpoint-every 200"),
                            (("--checkpoint-every", "7"), "--checkpoint-every 7")):
            for begun in (False, True):
                if begun:
                    out.mkdir()
                code, said, _ = self.job("train", "train-2dc", *given, "--out", out, DRY_RUN="1")
                command = next(line for line in said.splitlines() if ": command " in line)
                self.assertEqual((code, "--resume" in command), (0, True))
                self.assertEqual("goes on there" in said, begun)
                self.assertEqual(command.count("--checkpoint-every"), 1)
                self.assertIn(kept, command)
            out.rmdir()

    def test_no_line_for_a_task(self):
        (self.directory / "sweep.txt").write_text("--scenario m8-2dc\n--scenario 'm8\n")
        code, _, said = self.job("sweep", "sweep.txt", SLURM_ARRAY_TASK_ID="3")
        self.assertEqual((code, "no line for task 3 (it has 2)" in said), (2, True), said)
        code, _, said = self.job("sweep", "sweep.txt", SLURM_ARRAY_TASK_ID="2")
        self.assertEqual((code, "No closing quotation" in said), (2, True), said)

    def test_no_modules_here(self):
        code, _, said = self.call(ROOT / "slurm" / "pipeline.sbatch", "m70-2dc", DRY_RUN="1",
                                  MODULESHOME="", site="LONGHAUL_MODULES=(gcc)\nmodule() { false; }")
        self.assertEqual(code, 2)
        self.assertIn("module load gcc failed", said)


if __name__ == "__main__":
    unittest.main()
