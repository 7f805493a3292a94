"""What the guards see in two questions that look alike."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixscope.analyzer.semantic.agreement import verdict
from prefixscope.analyzer.semantic.differences import details
from prefixscope.analyzer.semantic.guards import REASONS, compare
from prefixscope.analyzer.semantic.parsed import is_personal
from prefixscope.analyzer.semantic.words import canonical, lexicon

DIFFERENT = [
    ("number", "Can I book for 4 people?", "Can I book for 14 people?"),
    ("number", "Is a deposit of three hundred euros due?", "Is a deposit of 200 euros due?"),
    ("number", "Where is parcel 12345678901?", "Where is parcel 12345678902?"),
    ("unit", "Is 5 kg too heavy?", "Is 5 lb too heavy?"),
    ("date", "Do you deliver on Monday?", "Do you deliver on Thursday?"),
    ("date", "What happens in the morning?", "What happens in the evening?"),
    ("negation", "Is the wine included?", "Is the wine not included?"),
    ("negation", "Can I fly with a visa?", "Can I fly without a visa?"),
    ("opposite", "How do I encrypt the disk?", "How do I decrypt the disk?"),
    ("opposite", "Where is the arrival hall?", "Where is the departure hall?"),
    ("opposite", "Is the track usable?", "Is the track unusable?"),
    ("direction", "How do I fly from Oslo to Bergen?", "How do I fly from Bergen to Oslo?"),
    ("direction", "Must I pay tax before insurance?", "Must I pay insurance before tax?"),
    ("quantifier", "Delete every file older than this", "Delete both files older than this"),
    ("name", "Who is the mayor of Ghent?", "Who is the mayor of Turin?"),
    ("code", "What does `os.stat` return?", "What does `os.lstat` return?"),
    ("code", "Why does parse_header fail?", "Why does parse_footer fail?"),
    ("ask", "When does the fair open?", "Where does the fair open?"),
    ("modal", "Am I allowed to wear a helmet?", "Do I have to wear a helmet?"),
    ("subject", "How long does the blue paint take to dry?", "How long does the clear varnish take to dry?"),
    ("narrower", "Which vaccines do travellers need?", "Which vaccines do travellers with diabetes need?"),
]
SAME = [
    ("How do I renew my licence?", "how do i renew my licence ??"),
    ("Please tell me how to renew a passport, thanks!", "How can I renew a passport?"),
    ("What's the boiling point of oil?", "What is the boiling point of oil"),
    ("In the garden, where can I smoke?", "Where can I smoke in the garden?"),
    ("Can't I log in?", "Cannot I log in?"),
    ("Is 20% of 300 taxed?", "Is twenty percent of 300 taxed?"),
    ("Is a fine of £1,200 possible?", "Is a fine of 1200 pounds possible?"),
    ("When does the course start?", "When does the course begin?"),
]


@pytest.mark.parametrize(("reason", "one", "other"), DIFFERENT)
def test_a_difference_is_seen_from_either_side(reason: str, one: str, other: str) -> None:
    """The reason is found, whichever question comes first."""
    assert reason in compare(one, other).reasons
    assert compare(one, other) == compare(other, one)


@pytest.mark.parametrize(("one", "other"), SAME)
def test_a_rewording_passes(one: str, other: str) -> None:
    """Courtesy, order, spelling of contractions and numbers, and synonyms are no difference."""
    found = compare(one, other)
    assert found.reasons == ()
    assert found.overlap == 1.0


def test_a_misspelling_is_told_from_another_word() -> None:
    """An unknown word that is nearly a known one is that word; two known words are two."""
    known = {"how", "do", "i", "report", "an", "emergency", "cured", "cubed", "is", "it"}
    assert compare("How do I report an emergancy", "How do I report an emergency", known.__contains__).overlap == 1.0
    assert compare("Is it cured", "Is it cubed", known.__contains__).overlap < 1.0


def test_every_reason_is_explained_and_every_example_is_of_one() -> None:
    """The table of reasons has a sentence for each, and each but those of calls has an example here."""
    assert {reason for reason, _, _ in DIFFERENT} | {"conversation", "personal"} == set(REASONS)


@given(st.text(max_size=80), st.text(max_size=80))
@settings(deadline=None)
def test_any_two_texts_can_be_compared(one: str, other: str) -> None:
    """Nothing raises; comparing is symmetric; a text is like itself; the overlap is a share."""
    found = compare(one, other)
    assert found == compare(other, one)
    assert 0.0 <= found.overlap <= 1.0
    assert compare(one, one) == ((), 1.0)


@given(st.text(max_size=60))
@settings(deadline=None)
def test_canonical_spelling_is_stable(text: str) -> None:
    """Canonical text is canonical, and white space around it says nothing."""
    assert canonical(canonical(text)) == canonical(text)
    assert canonical(f"  {text}\n") == canonical(text)


def test_powers_are_no_plain_digits() -> None:
    """NFKC would make 10² and 102 one text; code keeps its case."""
    assert canonical("What is 10²?") != canonical("What is 102?")
    assert canonical("ﬁne ½") == "fine ½"
    assert canonical("```x = A```") != canonical("```x = a```")


def test_word_lists_hold_no_word_against_itself() -> None:
    """No stem is its own opposite, and no unit has two names."""
    lists = lexicon()
    assert [word for word, others in lists.opposites.items() if word in others] == []
    assert set(lists.units.values()) <= set(lists.units)


def test_a_speaker_means_what_is_his() -> None:
    """My and I are personal, the is not."""
    assert is_personal("Where is my parcel?")
    assert not is_personal("Where is the museum?")


@pytest.mark.parametrize(
    ("one", "other", "cosine", "expected"),
    [
        ("Yes, you can.", "yes,  you can.", None, "same"),
        ("Yes, until Friday.", "No, it is closed.", 0.99, "different"),
        ("It costs 12 euros.", "It costs 15 euros.", 0.99, "different"),
        ("It costs 12 euros.", "It costs 12 euros plus 3 for the bag.", 0.8, "unclear"),
        ("Open the settings and choose Language.", "Choose Language in the settings.", 0.95, "same"),
        ("Open the settings.", "Bake it for an hour.", 0.2, "different"),
        ("Turn it on.", "Turn it off.", 0.97, "unclear"),
        ("Call the office.", "Ring the office.", None, "unclear"),
    ],
)
def test_answers_are_compared_by_what_they_state(one: str, other: str, cosine: float | None, expected: str) -> None:
    """Facts decide; wording alone leaves it open."""
    assert verdict(one, other, cosine) == expected
    assert verdict(other, one, cosine) == expected


WORDS = [
    ("Is it open on Sunday?", "Is it open on Saturday?", "date", "Sunday / Saturday"),
    ("Can I return it?", "Can I not return it?", "negation", "– / not"),
    ("Is a 500 Wh battery in stock?", "Is a 400 Wh battery in stock?", "number", "500 / 400"),
    ("How does `read_file` work?", "How does `write_file` work?", "code", "read_file / write_file"),
    (
        "Trains from Paris to Rome?",
        "Trains from Rome to Paris?",
        "direction",
        "from Paris, to Rome / from Rome, to Paris",
    ),
]


@pytest.mark.parametrize(("one", "other", "reason", "detail"), WORDS)
def test_a_reason_names_the_words_that_differ(one: str, other: str, reason: str, detail: str) -> None:
    """In the order of the two questions; the other way round it is the other way round."""
    assert details(one, other)[reason] == detail
    assert details(other, one)[reason] == " / ".join(reversed(detail.split(" / ")))


@given(st.text(max_size=60), st.text(max_size=60))
@settings(deadline=None)
def test_details_are_of_reasons(one: str, other: str) -> None:
    """Only of reasons that there are, and of equal questions none."""
    assert details(one, other).keys() <= set(compare(one, other).reasons)
    assert details(one, one) == {}
