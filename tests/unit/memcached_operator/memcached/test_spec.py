"""The quick way to read a specification holds to what the models say."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from hypothesis import given, strategies as st

from memcached_operator.api.names import IMAGE_MAX_LENGTH, InvalidSpec
from memcached_operator.api.v1alpha1 import validate_spec
from memcached_operator.memcached.spec import Spec, read_spec

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**40), 2**40),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=20),
    st.from_regex(r"[-a-z0-9_.:/@+\[\] !]{0,20}", fullmatch=True),
    st.just("a" * IMAGE_MAX_LENGTH),
    st.just("a" * (IMAGE_MAX_LENGTH + 1)),
    st.just("memcached:1\n"),
    st.lists(st.integers(), max_size=2),
)
SPECS = st.one_of(VALUES, st.dictionaries(st.sampled_from(["size", "image", "other"]), VALUES, max_size=3))


def judged_by(read: object, raw: bytes) -> object:
    """What a reader makes of `raw`: the values, or the complaint."""
    assert callable(read)
    try:
        spec = read(raw)
    except InvalidSpec as error:
        return str(error)
    return (spec.size, spec.image)


@given(SPECS)
def test_it_accepts_and_refuses_what_the_models_do_and_in_their_words(value: object) -> None:
    raw = json.dumps(value).encode()
    assert judged_by(read_spec, raw) == judged_by(validate_spec, raw)


@pytest.mark.parametrize("raw", [b"", b"{}", b"null"])
def test_a_missing_specification_is_the_default_one(raw: bytes) -> None:
    assert read_spec(raw) == Spec(size=1, image=None)


def test_a_good_specification_loads_no_pydantic_and_a_bad_one_does() -> None:
    program = (
        "import sys; from memcached_operator.memcached.spec import read_spec\n"
        'read_spec(b\'{"size": 3, "image": "memcached:1.6"}\'); print(\'pydantic\' in sys.modules)\n'
        'try: read_spec(b\'{"size": "3"}\')\n'
        "except ValueError as error: print('pydantic' in sys.modules, error)\n"
    )
    answer = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=60)
    good, bad = answer.stdout.splitlines()
    assert good == "False"
    assert bad == 'True spec.size: must be a whole number from 0 to 2147483647, got "3" (a string)'


@pytest.mark.parametrize("levels", [10, 500, 800, 950, 5000])
def test_a_value_that_is_nested_however_deeply_is_told_and_cut(levels: int) -> None:
    raw = b'{"size": ' + b'{"a":' * levels + b"1" + b"}" * levels + b"}"
    with pytest.raises(InvalidSpec, match=r'^spec.size: must be a whole number .*, got \{"a": .* \(an object\)$'):
        read_spec(raw)


@pytest.mark.parametrize("levels", [10, 800, 5000])
def test_fields_that_we_do_not_know_may_be_nested_however_deeply(levels: int) -> None:
    raw = b'{"size": 3, "x": ' + b"[" * levels + b"]" * levels + b"}"
    assert read_spec(raw) == Spec(size=3)
