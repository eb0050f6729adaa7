"""Operations: long work done page by page until it is done, cancelled or failed.

The operation's row holds its state and progress. Each page of the work may be cut off or done twice; the write after
the page, conditional on the step at which it began, counts it once. (Decision 0036.)
"""
