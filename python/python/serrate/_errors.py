"""The exceptions of the package: each is an `Error` and one of Python's own."""


class Error(Exception):
    """Everything that the package raises."""


class InvalidError(Error, ValueError):
    """Arguments, statements or data that make no sense, with what would."""


class WrongTypeError(Error, TypeError):
    """A type that an operation does not take."""


class OutOfRangeError(Error, IndexError):
    """An index outside its axis."""


class InvalidIndexError(InvalidError, OutOfRangeError):
    """An index or an axis that makes no sense: an IndexError and a ValueError, as numpy's AxisError."""


class BadFileError(InvalidError):
    """A file whose content is not of its format."""


class NoSuchColumnError(Error, KeyError):
    """A column that a table does not have."""

    def __str__(self) -> str:
        # A KeyError shows its argument as a literal.
        return str(self.args[0]) if self.args else ""


class TooWideError(Error, OverflowError):
    """An integer result that does not fit 64 bits."""


class TooLargeError(Error, MemoryError):
    """Memory that is refused before it is allocated."""


class FileError(Error, OSError):
    """The operating system refused."""


class NotFoundError(FileError, FileNotFoundError):
    """A file or folder that is not there."""


class ExistsError(FileError, FileExistsError):
    """An output that exists and may not be replaced."""
