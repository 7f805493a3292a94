"""The services of the traffic with one leak per cause, and healthy ones beside them.

A service has at most one fault (one has two, so that savings overlap), and its rhythm is such that no other fix would
pay: where sessions share a prompt that is marked for five minutes, calls of a burst follow each other well within that
and bursts are more than an hour apart; else what sessions share is shorter than the minimum, so that each lives by
itself.
"""

from dataclasses import replace

import arrangements
import assembly
import fronts
from cause_fixes import (
    marked_last_two_turns,
    marked_static,
    moved_behind_static,
    one_order_and_moved_volatile,
)
from planted_service import Service
from schedule import Bounds, Rhythm
from services import GEMINI_FLASH, GPT_4_1, GPT_5_1, GPT_5_MINI, SONNET_4_5, SONNET_4_6, Model
from simulator import Rules
from turns import Talk

GPT_5_6 = Model("openai", "gpt-5.6-terra", "gpt-5.6-terra", Rules("boundaries", 1024, ttl_ms=1_800_000, lookback=21))
HAIKU_4_5 = Model("anthropic", "claude-haiku-4-5", "claude-haiku-4-5-20251001", Rules("explicit", min_tokens=4096))
BEDROCK_SONNET = Model("aws", "anthropic.claude-sonnet-4-6", "", Rules("explicit", min_tokens=1024))
GEMINI = replace(GEMINI_FLASH, rules=Rules("automatic", min_tokens=2048, ttl_ms=300_000))


def one_shots(hours: tuple[int, ...], sessions: int, gap: Bounds = (40, 200)) -> Rhythm:
    return Rhythm(hours, sessions, gap)


def talks(hours: tuple[int, ...], turns: Bounds, sessions: int = 1, turn_gap: Bounds = (30, 140)) -> Rhythm:
    return Rhythm(hours, sessions, (60, 190), turns, turn_gap)


_AUTOMATIC_TALK = Talk("retail", talks((7, 12, 17), (4, 6)), system=60)
_MARKED_TALK = Talk("billing", talks((6, 11, 16), (2, 4), sessions=2), system=60)
_OWN_DOCUMENT = Talk("sales", talks((7, 12, 17), (4, 6)), system=6, document=(70, 90), notes=(14, 20))


SERVICES: tuple[Service, ...] = (
    # --- text that changes in front of text that does not
    Service(
        name="clock-seconds",
        model=GPT_5_1,
        api="chat",
        talk=Talk("retail", one_shots((6, 10, 14, 18), sessions=4), system=120),
        cause="volatile_prefix",
        assemble=assembly.fronted(fronts.clock_in_front),
    ),
    Service(
        name="clock-minutes",
        model=SONNET_4_6,
        api="messages",
        talk=Talk("billing", one_shots((9, 15), sessions=9, gap=(8, 35)), system=100),
        cause="volatile_prefix",
        assemble=assembly.fronted(assembly.minute_in_front),
        front_ttl="5m",
    ),
    Service(
        name="request-id",
        model=SONNET_4_5,
        api="messages",
        talk=Talk("operations", talks((6, 11, 16), (2, 4), sessions=2), system=90),
        cause="volatile_prefix",
        assemble=assembly.fronted(fronts.request_id_inside),
        is_diagnosed=True,
        front_ttl="5m",
        last_ttl="5m",
    ),
    Service(
        name="customer-inside",
        model=GPT_4_1,
        api="chat",
        talk=Talk("sales", talks((7, 10, 13, 16), (2, 4)), system=130),
        cause="volatile_prefix",
        assemble=assembly.fronted(fronts.customer_inside),
        fix=moved_behind_static,
    ),
    # --- tools
    Service(
        name="tools-shuffled",
        model=GPT_5_1,
        api="chat",
        talk=Talk("operations", talks((1, 7, 13, 19), (3, 5), turn_gap=(20, 60)), system=20, tools=18),
        cause="tools_reordered",
        assemble=assembly.fronted(fronts.tools_in_random_order),
    ),
    Service(
        name="tools-shuffled-and-clock",
        model=GPT_5_1,
        api="chat",
        talk=Talk("operations", talks((2, 8, 14, 20), (3, 4), turn_gap=(20, 60)), system=90, tools=12),
        cause="tools_reordered",
        also="volatile_prefix",
        assemble=assembly.fronted(assembly.clock_behind_shuffled_tools),
        fix=one_order_and_moved_volatile,
    ),
    Service(
        name="tool-keys-shuffled",
        model=SONNET_4_6,
        api="messages",
        talk=Talk("research", talks((5, 11, 17), (4, 6), turn_gap=(20, 90)), system=20, tools=12),
        cause="tools_reordered",
        assemble=assembly.fronted(assembly.keys_in_random_order),
        is_diagnosed=True,
        front_ttl="5m",
        last_ttl="5m",
    ),
    Service(
        name="tools-of-a-server",
        model=GPT_5_1,
        api="chat",
        talk=Talk("operations", talks((3, 9, 15, 21), (5, 7), turn_gap=(20, 60)), system=30, tools=16, rows=(8, 12)),
        cause="tools_changed",
        assemble=assembly.tools_come_and_go,
    ),
    Service(
        name="tools-of-a-marked-server",
        model=SONNET_4_5,
        api="messages",
        talk=Talk("research", talks((4, 10, 16), (5, 7), turn_gap=(20, 60)), system=30, tools=14, rows=(8, 12)),
        cause="tools_changed",
        assemble=assembly.tools_come_and_go,
        is_diagnosed=True,
        front_ttl="5m",
        last_ttl="5m",
    ),
    # --- lifetimes
    Service(
        name="slow-agent",
        model=SONNET_4_5,
        api="messages",
        talk=Talk(
            "research",
            Rhythm((7,), 3, (700, 2300), (4, 6), turn_gap=(660, 2350), is_sequence=True),
            system=80,
            tools=6,
        ),
        cause="ttl_lapse",
        front_ttl="5m",
        last_ttl="5m",
    ),
    Service(
        name="quick-agent",
        model=SONNET_4_6,
        api="messages",
        talk=Talk(
            "research", talks((4, 9, 14), (7, 9), turn_gap=(30, 110)), system=6, document=(60, 70), notes=(24, 30)
        ),
        cause="ttl_lapse",
        verdict="informational",
        arrange=arrangements.with_a_rare_pause,
        last_ttl="5m",
    ),
    Service(
        name="shorter-lives",
        model=SONNET_4_5,
        api="messages",
        talk=Talk("billing", Rhythm((7,), 3, (700, 2300), (4, 6), turn_gap=(660, 2350), is_sequence=True), system=90),
        cause="ttl_class_switched",
        assemble=assembly.hour_until(5),
    ),
    # --- settings
    Service(
        name="thinking-toggled",
        model=SONNET_4_6,
        api="messages",
        talk=replace(_OWN_DOCUMENT, domain="research"),
        cause="settings_changed",
        assemble=assembly.toggled("thinking", "messages", ("", '{"type":"enabled","budget_tokens":1024}')),
        last_ttl="5m",
    ),
    Service(
        name="tool-choice-toggled",
        model=SONNET_4_5,
        api="messages",
        talk=Talk("operations", talks((6, 12, 18), (5, 7), turn_gap=(20, 60)), system=60, tools=6, rows=(8, 12)),
        cause="settings_changed",
        assemble=assembly.toggled("tool_choice", "messages", ('{"type":"auto"}', '{"type":"any"}')),
        front_ttl="5m",
        last_ttl="5m",
    ),
    Service(
        name="effort-alternating",
        model=GPT_5_6,
        api="responses",
        talk=replace(_OWN_DOCUMENT, domain="billing"),
        cause="settings_changed",
        assemble=assembly.toggled("reasoning.effort", "tools", ('"low"', '"high"')),
        is_diagnosed=True,
    ),
    # --- scopes
    Service(
        name="fresh-cache-key",
        model=GPT_5_6,
        api="responses",
        talk=replace(_OWN_DOCUMENT, domain="retail"),
        cause="split_scope",
        assemble=assembly.fresh_key,
        is_diagnosed=True,
    ),
    Service(
        name="two-accounts",
        model=SONNET_4_6,
        api="messages",
        talk=replace(_MARKED_TALK, domain="retail", document=(10, 14), notes=(10, 14)),
        cause="split_scope",
        assemble=assembly.alternating_accounts,
        front_ttl="5m",
        last_ttl="5m",
    ),
    Service(
        name="three-regions",
        model=BEDROCK_SONNET,
        api="converse",
        talk=replace(_MARKED_TALK, domain="operations", document=(10, 14), notes=(10, 14)),
        cause="split_scope",
        assemble=assembly.alternating_regions,
        front_ttl="5m",
        last_ttl="5m",
    ),
    # --- edits of the system prompt and of the history
    Service(
        name="deployed-once",
        model=GPT_5_1,
        api="chat",
        talk=Talk("retail", talks((7, 12, 17), (4, 6), sessions=3), system=80, document=(14, 18), notes=(10, 14)),
        cause="system_edited",
        verdict="informational",
        assemble=assembly.edited_on((5,), hour=12),
    ),
    Service(
        name="deployed-daily",
        model=GPT_4_1,
        api="chat",
        talk=Talk("sales", talks((6, 11, 16), (4, 6), sessions=2), system=80, document=(14, 18), notes=(10, 14)),
        cause="system_edited",
        verdict="informational",
        assemble=assembly.edited_on(tuple(range(9)), hour=11),
    ),
    Service(
        name="results-cleared",
        model=SONNET_4_6,
        api="messages",
        talk=Talk(
            "operations", talks((5, 13), (8, 11), turn_gap=(20, 60)), system=5, tools=2, rows=(5, 7), document=(20, 28)
        ),
        cause="history_rewritten",
        assemble=assembly.old_results_cleared,
        last_ttl="5m",
        is_diagnosed=True,
    ),
    Service(
        name="results-cleared-unmarked",
        model=GPT_5_1,
        api="chat",
        talk=Talk("research", talks((8, 18), (8, 11), turn_gap=(20, 60)), system=70, tools=6, rows=(5, 7)),
        cause="history_rewritten",
        assemble=assembly.old_results_cleared,
    ),
    Service(
        name="sliding-window",
        model=SONNET_4_5,
        api="messages",
        talk=Talk("sales", talks((7, 16), (10, 12)), system=8, document=(50, 60), notes=(10, 14)),
        cause="history_pruned",
        assemble=assembly.sliding_window,
        last_ttl="5m",
    ),
    Service(
        name="summarised",
        model=SONNET_4_6,
        api="messages",
        talk=Talk("research", talks((6, 14), (9, 11)), system=6, document=(40, 50), notes=(16, 20)),
        cause="compacted",
        verdict="informational",
        assemble=assembly.compacted,
        last_ttl="5m",
        is_diagnosed=True,
    ),
    Service(
        name="forked-sessions",
        model=SONNET_4_6,
        api="messages",
        talk=Talk(
            "billing",
            talks((7, 13, 19), (4, 5), sessions=2, turn_gap=(50, 100)),
            system=6,
            document=(70, 80),
            notes=(8, 12),
        ),
        cause="forked",
        arrange=arrangements.with_forks,
        last_ttl="5m",
    ),
    # --- requests at the same time
    Service(
        name="burst-of-questions",
        model=SONNET_4_5,
        api="messages",
        talk=Talk("research", talks((8, 17), (6, 10)), system=6, document=(90, 120)),
        cause="parallel_cold_start",
        arrange=arrangements.together,
        last_ttl="5m",
    ),
    Service(
        name="burst-unmarked",
        model=GPT_5_1,
        api="chat",
        talk=Talk("sales", talks((9, 18), (6, 10)), system=4, document=(110, 140)),
        cause="parallel_cold_start",
        arrange=arrangements.together,
    ),
    # --- markers
    Service(
        name="no-marker",
        model=SONNET_4_5,
        api="messages",
        talk=Talk("retail", talks((6, 11, 16), (3, 5), sessions=2), system=80),
        cause="no_marker",
    ),
    Service(
        name="marker-behind-question",
        model=SONNET_4_6,
        api="messages",
        talk=Talk("billing", one_shots((8, 14, 20), sessions=5), system=110),
        cause="marker_misplaced",
        fix=marked_static,
        last_ttl="5m",
    ),
    Service(
        name="marker-too-far",
        model=SONNET_4_5,
        api="messages",
        talk=Talk("sales", talks((7, 12, 17), (4, 5)), system=6, snippets=(21, 25), snippet=(3, 5)),
        cause="marker_misplaced",
        fix=marked_last_two_turns,
        last_ttl="5m",
    ),
    Service(
        name="written-for-nobody",
        model=SONNET_4_6,
        api="messages",
        talk=Talk("research", Rhythm(tuple(range(0, 24, 3)), 4, (2650, 2900)), system=110),
        cause="write_churn",
        arrange=arrangements.with_marked_document,
    ),
    # --- nothing to mend
    Service(
        name="tiny-prompts",
        model=GPT_5_MINI,
        api="chat",
        talk=Talk("operations", one_shots((2, 8, 12, 16, 22), sessions=3), system=4),
        cause="below_minimum",
        verdict="informational",
    ),
    Service(
        name="below-the-minimum",
        model=HAIKU_4_5,
        api="messages",
        talk=Talk("retail", one_shots((5, 10, 15, 20), sessions=4), system=12),
        cause="below_minimum",
        verdict="informational",
        front_ttl="5m",
    ),
    Service(
        name="reads-lost-at-random",
        model=GPT_5_1,
        api="chat",
        talk=Talk("research", talks((7, 10, 13, 16), (4, 6)), system=70),
        cause="provider_side",
        verdict="provider_side",
        missed_at_random=0.18,
    ),
    Service(
        name="one-off-reports",
        model=GPT_4_1,
        api="chat",
        talk=Talk("research", one_shots((7, 9, 11, 13, 15, 17), sessions=1), system=2, document=(50, 80)),
        cause="first_seen",
        verdict="informational",
    ),
    Service(
        name="silent-streams",
        model=GPT_4_1,
        api="chat",
        talk=Talk("operations", one_shots((5, 9, 14, 18), sessions=3, gap=(30, 180)), system=70),
        cause="unknown_usage",
        verdict="informational",
        usage_rate=0.5,
    ),
    # --- healthy
    Service(name="healthy-chat", model=GPT_5_1, api="chat", talk=_AUTOMATIC_TALK),
    Service(
        name="healthy-messages", model=SONNET_4_6, api="messages", talk=_MARKED_TALK, front_ttl="5m", last_ttl="5m"
    ),
    Service(
        name="healthy-converse",
        model=BEDROCK_SONNET,
        api="converse",
        talk=_MARKED_TALK,
        assemble=assembly.one_region,
        front_ttl="5m",
        last_ttl="5m",
    ),
    Service(name="healthy-responses", model=GPT_5_6, api="responses", talk=_OWN_DOCUMENT, assemble=assembly.one_key),
    Service(
        name="healthy-agent",
        model=SONNET_4_5,
        api="messages",
        talk=Talk("operations", talks((3, 9, 15, 21), (4, 6), turn_gap=(20, 60)), system=50, tools=12),
        front_ttl="5m",
        last_ttl="5m",
    ),
    Service(
        name="healthy-gemini",
        model=GEMINI,
        api="gemini",
        talk=Talk("research", Rhythm((3,), 24, (20, 60), every_days=3), system=110, document=(10, 18)),
    ),
)
