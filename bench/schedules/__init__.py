"""`make bench-schedules`: the time that a next instant costs, measured next to other engines in one process."""
