"""A run that is longer than its job may be: warned, stopped, queued again, complete."""

from jobs import LONG, JobTest, read_record


class TimeLimit(JobTest):
    def test_complete_after_the_second_start(self):
        number, self.out = self.cluster.short_job, self.cluster.short_of_time
        job = self.assert_ended(number, "COMPLETED", "0:0")
        self.assertGreaterEqual(int(job["Restarts"]), 1)
        record = self.assert_valid(LONG)
        print(sorted(record), record.get("parts"), read_record)
