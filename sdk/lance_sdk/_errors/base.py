"""The root of the error tree, apart so that its branches can live in files of their own."""


class LanceError(Exception):
    """Base of everything this package raises.

    Attributes:
        retryable: whether trying the same again may succeed.
        maybe_applied: whether the server may have done what was asked although it failed.
    """

    retryable: bool = False
    maybe_applied: bool = False
