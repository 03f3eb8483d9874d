"""Communication: copies, signals and collectives between ranks.

They are read and verified; nothing here runs them yet.
"""

from __future__ import annotations

from tilewright.pto.op import unmeant
from tilewright.pto.text.form import free

_FAMILY = "communication between ranks"

unmeant("pto.comm.tput comm.tget", free("yyzz?"), _FAMILY)
unmeant("pto.comm.tnotify comm.twait", free("yi"), _FAMILY)
unmeant("pto.comm.ttest", free("yi", "b"), _FAMILY)
unmeant("pto.comm.tbroadcast comm.tgather comm.tscatter", free("yzx*"), _FAMILY)
unmeant("pto.comm.treduce", free("yzzx*"), _FAMILY)
unmeant("pto.comm.build_async_session", free("zp", "o"), _FAMILY)
unmeant("pto.comm.tput_async comm.tget_async", free("yyo", "o"), _FAMILY)
unmeant("pto.comm.wait_async_event comm.test_async_event", free("oo", "b"), _FAMILY)
