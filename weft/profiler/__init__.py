"""The profiler: when and where eager ops, instructions and acts ran, on one or many ranks, on one clock.

with flow.profiler.profile() as p:
    step(x)
print(p.key_averages())
p.export_chrome_trace(f"trace.{flow.env.get_rank()}.json")     # open it in ui.perfetto.dev
"""

from weft.profiler.averages import Average, Averages
from weft.profiler.caches import caches
from weft.profiler.chrome import merge
from weft.profiler.profile import ProfilerActivity, profile, supported_activities
from weft.profiler.schedule import ProfilerAction, schedule, tensorboard_trace_handler
from weft.profiler.spans import range_pop, range_push, record_function

__all__ = [
    "Average", "Averages", "ProfilerAction", "ProfilerActivity", "caches", "merge", "profile", "range_pop",
    "range_push", "record_function", "schedule", "supported_activities", "tensorboard_trace_handler",
]  # fmt: skip
