"""`pl.prefetch`: hints that memory will be read soon."""

from tilewright.core.annotations import Scalar as _Scalar
from tilewright.dtypes import TASK_ID as _TASK_ID
from tilewright.ops.prefetch import async_prefetch as async_prefetch
from tilewright.ops.prefetch import make_context as make_context
from tilewright.ops.prefetch import session as session
from tilewright.ops.prefetch import wait as wait

PrefetchAsyncContext = AsyncEvent = AsyncSession = _Scalar(_TASK_ID)
