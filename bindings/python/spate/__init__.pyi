from asyncio import DefaultEventLoopPolicy
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from .inspector import inspect as inspect
from .loop import Loop as Loop
from .loop import Metrics as Metrics

__version__: Final[str]
__all__ = ["Loop", "Metrics", "inspect", "install", "new_event_loop", "run"]

_T = TypeVar("_T")

class EventLoopPolicy(DefaultEventLoopPolicy): ...

def new_event_loop() -> Loop: ...
def run(main: Coroutine[Any, Any, _T], *, debug: bool | None = None) -> _T: ...
def install() -> None: ...
