"""The form in which people decide about findings."""

import getpass
import os
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, Final

import streamlit as st

from prefixscope.analyzer.errors import StoreError
from prefixscope.analyzer.lifecycle.states import FOLLOWS, State
from prefixscope.analyzer.report.wording import usd
from prefixscope.dashboard import lifecycle, text
from prefixscope.dashboard.command import SIGN_IN_VARIABLE
from prefixscope.dashboard.lifecycle import Wish

FORMS: Final = {
    "accepted": "Accept: it will be fixed",
    "fixed": "Fixed: the change is live",
    "dismissed": "Dismiss: it will not be fixed",
}


def form(ids: Sequence[str], *, key: str) -> None:
    """The decision on one finding or on several."""
    possible = _possible(ids)
    if not possible:
        st.text("Nothing can be decided now: a check of the calls has the word.")
        return
    status = st.segmented_control(
        "Decision",
        possible,
        default=possible[0],
        required=True,
        format_func=lambda name: FORMS[name].partition(":")[0],
        key=f"{key}_status",
    )
    with st.form(f"{key}_form", border=False, clear_on_submit=True):
        wish = _fields(str(status), key)
        if st.form_submit_button("Keep the decision", type="primary", icon=":material/check:"):
            _keep(ids, wish)


def _possible(ids: Sequence[str]) -> list[str]:
    """What people may decide of all of these."""
    current = lifecycle.board()
    allowed = [FOLLOWS[current.states.get(lifecycle.told(id_).id, State()).status] for id_ in ids]
    return [name for name in FORMS if all(name in one for one in allowed)]


def _fields(status: str, key: str) -> Wish:
    st.caption(text.literal(FORMS[status]))
    owner, due, reason, until, on = "", None, "", None, None
    if status == "accepted":
        owner = st.text_input("Owner", key=f"{key}_owner", max_chars=100, placeholder="who will do it")
        due = _day(st.date_input("Due", value=None, key=f"{key}_due"))
    elif status == "fixed":
        on = _day(st.date_input("Live since (UTC)", value="today", max_value="today", key=f"{key}_on"))
        st.caption("It counts for nothing until a check of the calls verifies it.")
    else:
        reason = st.text_input("Reason", key=f"{key}_reason", max_chars=300, placeholder="why not")
        until = _day(st.date_input("Open again from", value=None, key=f"{key}_until"))
    by = st.text_input("Signed", value=_who(), key=f"{key}_by", max_chars=100)
    return Wish(status, by or "unknown", owner, due, reason, until, on)


def _keep(ids: Sequence[str], wish: Wish) -> None:
    st.session_state["signed"] = wish.by
    try:
        refused = lifecycle.decide(ids, wish)
    except StoreError as error:
        refused = [str(error)]
    if refused:
        st.error("Not kept.")
        st.text("\n".join(refused))
        return
    st.toast("The decision is kept.", icon=":material/check:")
    st.rerun()


def _who() -> str:
    """Who signs: as before in this session, else as logged in."""
    if "signed" in st.session_state:
        return str(st.session_state["signed"])
    if os.environ.get(SIGN_IN_VARIABLE):
        return str(st.user.get("email") or "")
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # containers may have a user without a name
        return ""


def _day(found: Any) -> date | None:
    return found if isinstance(found, date) else None


def state_lines(finding: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What is known of a finding's life; rows about nothing are left out."""
    verified = finding["verified_usd"]
    told_ = [
        ("first seen", (finding["first_seen"] or "")[:10]),
        ("owner", finding["owner"] or ""),
        ("due", finding["due"] or ""),
        ("dismissed until", finding["until"] or ""),
        ("fixed on", (finding["fixed_on"] or "")[:10]),
        (
            "verified",
            f"{usd(verified['estimate'])} ({usd(verified['low'])} to {usd(verified['high'])})" if verified else "",
        ),
    ]
    return [(name, value) for name, value in told_ if value]
