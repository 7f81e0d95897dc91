"""A server is kept off the client's core while one client calls it, and gets its cores back."""

from types import SimpleNamespace

import pytest

from labbook.papers.cms_scalability import placement


def server(cores, ran):
    host = SimpleNamespace(cores=cores, run=ran.append)
    return SimpleNamespace(host=host, process=SimpleNamespace(pid=7))


def test_a_server_that_shares_a_core_leaves_it_to_the_client_and_gets_it_back():
    ran = []
    with pytest.raises(OSError), placement.beside(server([0, 1], ran), SimpleNamespace(cores=[1])):
        assert len(ran) == 1 and "taskset -acp 0 $pid" in ran[0] and "sid= -p 7" in ran[0]
        raise OSError
    assert len(ran) == 2 and "taskset -acp 0,1 $pid" in ran[1]


@pytest.mark.parametrize("cores, clients", [([0], [1]), ([1], [1]), (None, [1]), ([0, 1], None)])
def test_a_server_without_a_core_to_leave_stays_where_it_is(cores, clients):
    ran = []
    with placement.beside(server(cores, ran), SimpleNamespace(cores=clients)):
        assert not ran
    assert not ran
