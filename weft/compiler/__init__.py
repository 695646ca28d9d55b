"""From job to plan: the passes in one visible list, then the lowering of this rank's part to tasks, chains and
registers. A job comes in; a plan and the source of its chains go out.
"""
