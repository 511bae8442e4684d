"""While something is timed, each processor has a program to run that gives way to all others."""

import os
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path
from unittest import mock

from longhaul.running import awake, tools

ENVIRONMENT = {name: value for name, value in os.environ.items() if name != awake.VARIABLE}
PROCESSORS = os.sched_getaffinity(0)
HOLDER = """
import time
from longhaul.running import awake
with awake.held():
    print("held", flush=True)
    time.sleep(60)
"""


def spinners(parent):
    """Of a process: its children that keep a processor awake."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [int(child) for child in children
            if awake.__file__ in Path(f"/proc/{child}/cmdline").read_text().split("\0")]


def is_there(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until(holds, seconds=20):
    end = time.monotonic() + seconds
    while not holds() and time.monotonic() < end:
        time.sleep(0.02)
    return holds()


class Held(unittest.TestCase):
    def setUp(self):
        patch = mock.patch.dict(os.environ, ENVIRONMENT, clear=True)
        patch.start()
        self.addCleanup(patch.stop)

    def test_each_processor_has_one_program_that_gives_way(self):
        with awake.held():
            found = spinners(os.getpid())
            self.assertEqual((len(found), awake.count()), (len(PROCESSORS), len(PROCESSORS)))
            self.assertEqual({os.sched_getscheduler(one) for one in found}, {os.SCHED_IDLE})
            self.assertEqual(sorted(os.sched_getaffinity(one) for one in found),
                             sorted({one} for one in PROCESSORS))
            with awake.held():
                self.assertEqual(spinners(os.getpid()), found)
            self.assertEqual(awake.count(), len(PROCESSORS))
        self.assertEqual((spinners(os.getpid()), awake.count()), ([], 0))

    def test_none_where_none_is_wanted(self):
        with awake.held(wanted=False):
            self.assertEqual((spinners(os.getpid()), awake.count()), ([], 0))
        os.environ[awake.VARIABLE] = "0"
        with awake.held():
            self.assertEqual((spinners(os.getpid()), awake.count()), ([], 0))

    def test_they_end_with_a_process_that_is_killed(self):
        with subprocess.Popen([sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, text=True,
                              env={**os.environ, "PYTHONPATH": str(tools.ROOT / "src/python")}) as holder:
            self.assertEqual(holder.stdout.readline(), "held\n")
            found = spinners(holder.pid)
            self.assertEqual(len(found), len(PROCESSORS))
            holder.send_signal(signal.SIGKILL)
        self.assertTrue(wait_until(lambda: not any(map(is_there, found))), found)

    def test_a_hypervisor_says_so_among_the_flags_alone(self):
        for text, virtual in (("flags\t\t: fpu hypervisor lahf_lm\n", True),
                              ("flags\t\t: fpu lahf_lm\nmodel name\t: a hypervisor\n", False)):
            with self.subTest(text), mock.patch.object(Path, "read_text", return_value=text):
                self.assertEqual(awake.is_virtual(), virtual)
        self.assertFalse(awake.is_virtual(Path("/nowhere")))


class Script(unittest.TestCase):
    def run_script(self, *words):
        return subprocess.run([tools.ROOT / "scripts" / "awake", *words], capture_output=True,
                              text=True, check=False, env=ENVIRONMENT)

    def test_a_command_keeps_its_words_streams_and_code(self):
        ran = self.run_script("sh", "-c", 'echo "$1 $LONGHAUL_AWAKE"; echo err >&2; exit 7', "-", "a  b")
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr),
                         (7, f"a  b {len(PROCESSORS)}\n", "err\n"))

    def test_a_signal_is_a_code_as_in_a_shell(self):
        self.assertEqual(self.run_script("sh", "-c", "kill -9 $$").returncode, 137)

    def test_no_command_and_an_unknown_one_are_refused(self):
        for words, said in (((), "awake: no command"), (("no-such-program",), "awake: no-such-program:")):
            with self.subTest(words):
                ran = self.run_script(*words)
                self.assertEqual(ran.returncode, 2)
                self.assertIn(said, ran.stderr)


if __name__ == "__main__":
    unittest.main()
