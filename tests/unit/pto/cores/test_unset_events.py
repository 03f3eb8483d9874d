"""Events between cores that nobody sets: the error speaks of events, not of tiles."""

from __future__ import annotations

import numpy as np
import pytest
from unit.pto.vectors.running import built

from tilewright.errors import ExecutionError

TEXT = """module attributes {pto.target_arch = "a5"} {
  func.func @k(%x: !pto.ptr<f32>) {
    pto.section.cube {
      pto.sync.wait <PIPE_MTE1>, 0
    }
    pto.section.vector {
      pto.sync.wait <PIPE_MTE3>, 1
      pto.sync.set <PIPE_MTE3>, 0
    }
    return
  }
}
"""


@pytest.mark.parametrize("platform", ["cpu", "interpret"])
def test_a_deadlock_of_events_speaks_of_events(platform: str) -> None:
    with pytest.raises(ExecutionError, match="nobody sets the event that is waited for here"):
        built(TEXT, platform)(1, np.zeros(4, np.float32))
