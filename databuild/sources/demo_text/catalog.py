"""All topics, and how often each is taken."""

from __future__ import annotations

from databuild.sources.demo_text import (
    arabic,
    chinese,
    code_other,
    code_script,
    dates_units,
    dialogues,
    french,
    german,
    hindi,
    japanese,
    knowledge,
    labels,
    letters,
    longform,
    maths_daily,
    maths_script,
    plans,
    portuguese,
    reading,
    rewriting,
    russian,
    spanish,
    stories,
    tables,
    turkish,
)
from databuild.sources.demo_text.script import Topic

# Of a thousand conversations, how many come from each group. Within a group every way to ask is as likely as any other.
_SHARES = {
    "maths-daily": (50, maths_daily.TOPICS),
    "maths": (60, maths_script.TOPICS),
    "dates-units": (42, dates_units.TOPICS),
    "python": (55, code_script.TOPICS),
    "code": (50, code_other.TOPICS),
    "tables": (55, tables.TOPICS),
    "reading": (35, reading.TOPICS),
    "rewriting": (42, rewriting.TOPICS),
    "labels": (34, labels.TOPICS),
    "stories": (42, stories.TOPICS),
    "letters": (42, letters.TOPICS),
    "plans": (36, plans.TOPICS),
    "knowledge": (42, knowledge.TOPICS),
    "talk": (40, dialogues.TOPICS),
    "long": (45, longform.TOPICS),
    "spanish": (33, spanish.TOPICS),
    "german": (33, german.TOPICS),
    "french": (33, french.TOPICS),
    "portuguese": (33, portuguese.TOPICS),
    "chinese": (33, chinese.TOPICS),
    "japanese": (33, japanese.TOPICS),
    "russian": (33, russian.TOPICS),
    "arabic": (33, arabic.TOPICS),
    "hindi": (33, hindi.TOPICS),
    "turkish": (33, turkish.TOPICS),
}
Way = tuple[str, Topic, int]


def _ways(group: str, topics: list[Topic]) -> list[Way]:
    return [(f"{group}/{topic.name}/{way}", topic, way) for topic in topics for way in range(topic.ways)]


_GROUPS = {group: _ways(group, topics) for group, (_, topics) in _SHARES.items()}

WHEEL = [_GROUPS[group] for group, (share, _) in _SHARES.items() for _ in range(share)]
"""One entry for each of a thousand conversations: the ways to ask of its group."""

HUGE = _ways("huge", longform.HUGE)
"""The ways to ask for a text that is longer than a row."""
