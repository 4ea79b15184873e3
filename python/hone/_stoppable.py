# SPDX-License-Identifier: Apache-2.0
"""Functions of the client as coroutines: each runs in a thread, and cancelling the coroutine ends its program.

Not for users: they import hone.aio. Start at `in_thread`.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from ._program import Stop, current_stop

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


async def in_thread(function: Callable[Parameters, Result], *arguments: Parameters.args, **named: Parameters.kwargs) -> Result:
    """Calls the function in a thread. If the coroutine is cancelled, the programs that the function started get SIGTERM, and
    the coroutine ends when they have."""
    stop = Stop()
    context = contextvars.copy_context()
    context.run(current_stop.set, stop)

    def call() -> Result:
        return context.run(lambda: function(*arguments, **named))

    future: asyncio.Future[Result] = asyncio.get_running_loop().run_in_executor(None, call)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        stop.stop()
        await asyncio.wait([future])
        future.exception()  # it was cancelled: what the program says of that is no news
        raise


def as_coroutine(function: Callable[Parameters, Result]) -> Callable[Parameters, Coroutine[Any, Any, Result]]:
    """The function as a coroutine function with the same parameters, result and errors."""

    @functools.wraps(function)
    async def coroutine(*arguments: Parameters.args, **named: Parameters.kwargs) -> Result:
        return await in_thread(function, *arguments, **named)

    coroutine.__doc__ = f"`hone.{function.__name__}` as a coroutine.\n\n    {function.__doc__}"
    return coroutine
