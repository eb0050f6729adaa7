"""Long work that goes on by itself, page by page, until it is done, cancelled, or cannot go on.

The operation's row is the truth: where it stands, how far it came. Each page of the work may be cut off or done twice;
the write behind it, conditional on where it began, counts it once. (Decision 0036.)
"""
