"""`make bench`: the budgets of docs/benchmarks.md, measured side by side in one run. Counts and ratios, no verdicts."""
