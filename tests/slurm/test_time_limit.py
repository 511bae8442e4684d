"""A run that is longer than its job may be: warned, stopped, queued again, complete."""

from jobs import LONG, JobTest


class TimeLimit(JobTest):
    def test_warned_and_queued_again(self):
        number, self.out = self.cluster.short_job, self.cluster.short_of_time
        self.cluster.until(lambda: "back to the queue" in self.cluster.log(number, "pipeline"),
                           "the warning before the time limit")
        self.cluster.call("scontrol", "update", f"JobId={number}", "TimeLimit=20")
        job = self.assert_ended(number, "COMPLETED", "0:0")
        self.assertGreaterEqual(int(job["Restarts"]), 1)
        self.assert_valid(LONG)
