import ipaddress
import itertools

import pytest

from lab.kubectl import LabError
from lab.node.network import addresses, free_block

FIRST = ipaddress.IPv4Network("198.18.0.0/22")


def test_the_parts_of_a_block_do_not_overlap_and_hold_their_addresses() -> None:
    mine = addresses(FIRST)
    parts = [ipaddress.IPv4Network(each) for each in (mine.link, mine.pods, mine.services)]
    assert not any(one.overlaps(other) for one, other in itertools.combinations(parts, 2))
    assert all(part.subnet_of(FIRST) for part in parts)
    assert ipaddress.ip_address(mine.host) in parts[0]
    assert ipaddress.ip_address(mine.node) in parts[0]
    assert mine.host != mine.node
    assert ipaddress.ip_address(mine.dns) in parts[2]


@pytest.mark.parametrize(
    ("taken", "free"),
    [
        ([], "198.18.0.0/22"),
        (["198.18.0.1/24"], "198.18.4.0/22"),
        (["198.18.0.1/24", "198.18.8.1/24"], "198.18.4.0/22"),
        (["198.18.200.1/16"], "198.19.0.0/22"),
    ],
)
def test_a_new_node_takes_the_first_block_in_which_the_machine_has_no_address(taken: list[str], free: str) -> None:
    assert str(free_block(taken)) == free


def test_a_machine_without_a_free_block_is_told_to_stop_nodes() -> None:
    with pytest.raises(LabError, match="stop some nodes"):
        free_block(["198.18.0.1/15"])
