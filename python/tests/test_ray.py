"""Scoring in Ray, as the guide has it."""

import guide
import pytest
import ray


@pytest.fixture
def cluster():
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def test_the_block_of_the_guide(cluster):
    assert guide.run("beyond-one-machine.md", "import ray") == 1
