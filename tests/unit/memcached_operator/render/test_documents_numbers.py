from __future__ import annotations

import pytest

from memcached_operator.render.documents import number_of

# As `kubectl label --local -o json` of 1.36 prints them.
NUMBERS = {
    **{"3": 3, "+3": 3, "-3": -3, "0": 0, "-0": 0, "1_0": 10, "1__0": 10},
    **{"010": 8, "-010": -8, "0o10": 8, "0O7": 7, "0x1F": 31, "0X1f": 31, "0x_1": 1, "0b11": 3, "-0b11": -3},
    **{"3.0": 3.0, "3.": 3.0, "3_.0": 3.0, "-0.0": 0.0, "2.5": 2.5, ".5": 0.5, "+.5e1": 5.0, "08": 8.0, "0_8": 8.0},
    **{"1e1": 10.0, "1E1": 10.0, "1e+1": 10.0, "1.e1": 10.0, "1e-1": 0.1},
    "18446744073709551615": 18446744073709551615,
    "99999999999999999999": 1e20,
}
WORDS = [
    *(
        "",
        "3a",
        "1:30",
        "1e",
        "e1",
        "1e400",
        "_1",
        "0x",
        "0x1p4",
        "0xg",
        "0b2",
        ".",
        "-",
        "+-3",
        "1.2.3",
        "1-2",
        ".inf",
    ),
    *("\u0663", "3\n", " 3"),  # digits are those of ASCII, and nothing is around them
]


@pytest.mark.parametrize(("word", "value"), NUMBERS.items())
def test_a_word_is_the_number_that_it_is_to_kubectl(word: str, value: float) -> None:
    found = number_of(word)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("word", WORDS)
def test_other_words_are_texts(word: str) -> None:
    assert number_of(word) is None
