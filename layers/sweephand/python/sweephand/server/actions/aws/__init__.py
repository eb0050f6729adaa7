"""Actions on services of AWS, with the role that a job names, and tasks in the stack's own account."""
