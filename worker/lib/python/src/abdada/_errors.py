"""What goes wrong, and how a number from the library becomes an exception."""
from typing import Any, Callable, List

from ._native import ffi, lib


class Error(Exception):
    """An error of the library or of this package. `code`: one of enum abdada_error; 0: this package's."""

    def __init__(self, text: str, code: int = 0) -> None:
        super().__init__(text)
        self.code = code


class InvalidArgument(Error, ValueError):
    """A value is outside its range or of another type, or the servers are not understood."""


class Unavailable(Error):
    """No shard is up, or its answer did not come in time."""


class NoWorkers(Error):
    """Shards are up, but no worker searches the job."""


class Refused(Error):
    """Workers are there, and none can search the job; the text says why, as far as it is known."""


_KINDS = {
    lib.ABDADA_E_ARGUMENT: InvalidArgument,
    lib.ABDADA_E_ADDRESS: InvalidArgument,
    lib.ABDADA_E_UNKNOWN: InvalidArgument,
    lib.ABDADA_E_UNAVAILABLE: Unavailable,
}


def error(code: int, why: str = "") -> Error:
    """The exception for a number."""
    text: str = why or ffi.string(lib.abdada_error_text(code)).decode()
    return _KINDS.get(code, Error)(text, code)


def checked(code: int) -> int:
    """The number, if it is no error; raises otherwise."""
    if code < 0:
        raise error(code)
    return code


def invalid(text: str) -> InvalidArgument:
    return InvalidArgument(text, lib.ABDADA_E_ARGUMENT)


def call(function: Callable[..., Any], *arguments: Any) -> Any:
    """function(*arguments), where C has no room for a value, or Python says that it is of another type."""
    try:
        return function(*arguments)
    except InvalidArgument:
        raise
    except (AttributeError, BufferError, LookupError, OverflowError, TypeError, ValueError) as wrong:
        raise invalid(str(wrong)) from wrong


def listed(values: Any) -> List[Any]:
    """A list of what the caller gives to iterate over. What its own generator raises stays as it is."""
    return list(call(iter, values))


def c_text(what: str, value: Any, encode: Callable[[Any], bytes] = str.encode) -> Any:
    """char[] of a text. The library would read only what is before a zero byte, so that two texts would be one."""
    encoded = call(encode, value)
    if b"\0" in encoded:
        raise invalid(f"{what} has a zero byte: {value!r}")
    return ffi.new("char[]", encoded)
