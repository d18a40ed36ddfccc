"""A test double: the job plugin with a failure inside every hook, of the kinds that could end a job."""

import sys

from akm_harbor.ab.plugin import ReportPlugin


class UnprintableError(Exception):
    def __str__(self):
        raise RuntimeError("even printing it fails")


class EveryHookRaises(ReportPlugin):
    def _watch(self, job):
        super()._watch(job)
        raise RuntimeError("on_job_start failed")

    def _record(self, event):
        super()._record(event)
        raise UnprintableError

    def _report(self):
        sys.exit(7)
