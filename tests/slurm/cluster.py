"""A Slurm cluster of four nodes on this machine, for tests: one munged, one slurmctld, four slurmd,
all on loopback, all state in one directory."""

import os
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NODES = 4
CPUS = 4  # of each node, as configured: the machine may have fewer
DEADLINE_S = 240

CONFIGURATION = """\
ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={directory}/munge.socket,cred_expire=5
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=2
SlurmdParameters=config_overrides
SwitchType=switch/none
ReturnToService=2
KillWait=5
MailProg=/bin/true
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool-%n
TmpFS={directory}/tmp-%n
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/slurmd-%n.pid
SlurmctldLogFile={directory}/slurmctld.log
SlurmdLogFile={directory}/slurmd-%n.log
NodeName=n[1-{nodes}] NodeHostname=localhost NodeAddr=127.0.0.1 Port=[{first}-{last}] CPUs={cpus}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""

# Four nodes on one host share the names in /dev/shm and have loopback alone, so ranks of different
# nodes must use TCP over it, and nothing that goes by the host's name. Open MPI's directory of a
# session does: a job that ends would take it from one that begins, so each job has its own.
SITE = """\
LONGHAUL_PARTITION=all
LONGHAUL_RANKS_PER_NODE=2
LONGHAUL_TIME=5
LONGHAUL_LAUNCHER='{launcher}'
export OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_oob_tcp_if_include=lo
export PMIX_MCA_gds=hash HWLOC_HIDE_ERRORS=2
OMPI_MCA_orte_tmpdir_base=$(mktemp -d "{directory}/ompi-XXXXXX")
export OMPI_MCA_orte_tmpdir_base
{more}
"""


class Cluster:
    def __init__(self, directory):
        self.directory = Path(directory)
        self.daemons = []
        self.environment = {**os.environ, "SLURM_CONF": str(self.directory / "slurm.conf")}
        for name in list(self.environment):
            if name.startswith(("SLURM_JOB", "SBATCH_", "OMPI_", "LONGHAUL_SITE", "DRY_RUN")):
                del self.environment[name]

    def start(self):
        for name in ["state", *(f"{kind}-n{node}" for kind in ("spool", "tmp")
                                for node in range(1, NODES + 1))]:
            (self.directory / name).mkdir()
        (self.directory / "slurm.conf").write_text(CONFIGURATION.format(
            directory=self.directory, nodes=NODES, first=17001, last=17000 + NODES, cpus=CPUS))
        key = self.directory / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        self.daemon("munged", "munged", "--foreground", "--key-file", key, "--num-threads", "2",
                    *(f"--{name}={self.directory}/munge.{kind}" for name, kind in
                      (("socket", "socket"), ("pid-file", "pid"), ("log-file", "log"),
                       ("seed-file", "seed"))))
        self.until(lambda: (self.directory / "munge.socket").exists(), "munged to listen")
        self.daemon("slurmctld", "slurmctld", "-D")
        for node in range(1, NODES + 1):
            self.daemon(f"slurmd-n{node}", "slurmd", "-D", "-N", f"n{node}")
        self.until(lambda: self.ask("sinfo", "-h", "-o", "%D %T").strip() == f"{NODES} idle",
                   "all nodes to be idle")

    def daemon(self, name, *command):
        with open(self.directory / f"{name}.out", "wb") as output:
            self.daemons.append(subprocess.Popen(
                [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, env=self.environment, cwd=self.directory))

    def stop(self):
        """Ends what this object started; the namespace of the tests ends whatever is left."""
        if len(self.daemons) > 1:
            self.call("scancel", "--user=root")
            self.until(lambda: not self.ask("squeue", "-h").strip(), "the queue to be empty")
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            try:
                daemon.wait(timeout=10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def call(self, *command, **environment):
        return subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False, cwd=self.directory,
                              timeout=DEADLINE_S, env={**self.environment, **environment})

    def ask(self, *command):
        return self.call(*command).stdout

    def until(self, holds, what):
        """Waits for a condition; says what was going on where it does not come true."""
        deadline = time.monotonic() + DEADLINE_S
        while not holds():
            if time.monotonic() > deadline:
                raise AssertionError(f"waited {DEADLINE_S} s for {what}.\n{self.report()}")
            time.sleep(0.2)

    def report(self):
        parts = [self.ask("sinfo", "-l"), self.ask("squeue", "-l")]
        for log in sorted(self.directory.glob("*.log")):
            parts.append(f"-- {log.name}\n" + "\n".join(
                log.read_text(errors="replace").splitlines()[-10:]))
        return "\n".join(parts)

    def site(self, name="site.env", launcher="mpirun", more=""):
        path = self.directory / name
        path.write_text(SITE.format(launcher=launcher, directory=self.directory, more=more))
        return path

    def submit(self, *words, site, **environment):
        """slurm/submit; the number of the job, or a failure with what it said."""
        done = self.call(ROOT / "slurm" / "submit", "--site", site, *words, **environment)
        if done.returncode or not done.stdout.startswith("job "):
            raise AssertionError(f"submit {words} ended with {done.returncode}: {done.stderr}")
        return done.stdout.split()[1]

    def job(self, number):
        """What scontrol says of a job, or of one task of an array (12_1)."""
        said = self.ask("scontrol", "show", "job", "--oneliner", number)
        return dict(word.split("=", 1) for word in said.split() if "=" in word)

    def wait(self, number, *states):
        """Until the job is in one of these states; what scontrol says of it then."""
        self.until(lambda: self.job(number).get("JobState") in states,
                   f"job {number} to be {' or '.join(states)}")
        return self.job(number)

    def ended(self, number):
        return self.wait(number, "COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")

    def log(self, number, kind):
        return (self.directory / f"longhaul-{kind}-{number}.log").read_text(errors="replace")
