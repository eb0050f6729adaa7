"""JSON values of every type and temper, as a caller may send them: hypothesis strategies for parsers."""

from __future__ import annotations

from hypothesis import strategies as st

from sweephand.base.json_text import Number

TEXTS = st.text(max_size=12) | st.sampled_from(
    ["", "***", "\x00", "\ud800", "http", "none", "basic", "x" * 3_000, "a\r\nb"]
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**99), 10**99)
    | st.sampled_from([Number("1.0"), Number("-0"), Number("1e300")])
    | TEXTS
)
ANY_JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3), max_leaves=8
)
