"""The exceptions of the package. Each is an `Error` and also one of Python's built-in exceptions."""


class Error(Exception):
    """Base class of all exceptions of the package."""


class InvalidError(Error, ValueError):
    """An argument, a statement or data are invalid. The message says what is valid."""


class WrongTypeError(Error, TypeError):
    """An operation does not support the type of an argument."""


class OutOfRangeError(Error, IndexError):
    """An index is outside its axis."""


class InvalidIndexError(InvalidError, OutOfRangeError):
    """An index or an axis is invalid. Both an IndexError and a ValueError, like numpy's AxisError."""


class BadFileError(InvalidError):
    """The content of a file does not have the format of the file."""


class NoSuchColumnError(Error, KeyError):
    """A table has no column of this name."""

    def __str__(self) -> str:
        # The text of a KeyError would be its argument as a literal, in quotes.
        return str(self.args[0]) if self.args else ""


class TooWideError(Error, OverflowError):
    """An integer result does not fit 64 bits."""


class TooLargeError(Error, MemoryError):
    """A result would exceed a memory limit. The memory is not allocated."""


class FileError(Error, OSError):
    """An operation of the operating system failed."""


class NotFoundError(FileError, FileNotFoundError):
    """A file or folder does not exist."""


class ExistsError(FileError, FileExistsError):
    """An output file or folder exists and must not be replaced."""
