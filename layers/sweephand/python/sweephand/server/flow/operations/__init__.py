"""Operations: long work that proceeds page by page until it is done, cancelled or failed.

The operation's row contains its state and progress. Each page of the work may be cut off or done twice. The write after
the page is conditional on the step at which it began, so each page counts once. (Decision 0036.)
"""
