"""Actions on services of AWS, by the role that a job names, and tasks in the stack's own account."""
