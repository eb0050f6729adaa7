"""`make bench-schedules`: the time that a next instant costs, beside other engines in one process."""
