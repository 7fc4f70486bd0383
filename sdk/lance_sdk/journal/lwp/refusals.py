"""Error codes of LWP in the words of store-and-forward."""

from collections.abc import Mapping
from typing import Final

from lance_sdk.errors import (
    AccessDenied,
    AuthenticationFailed,
    AuthenticationRequired,
    CrcMismatch,
    InternalServerError,
    InvalidMagic,
    InvalidPayload,
    InvalidTopicName,
    PayloadTooLarge,
    ServerError,
    StorageError,
    UnknownServerError,
    VersionMismatch,
)
from lance_sdk.journal.rejections import Category

_CATEGORIES: Final[Mapping[type[ServerError], Category]] = {
    InvalidPayload: Category.PARSE_ERROR,
    CrcMismatch: Category.PARSE_ERROR,
    PayloadTooLarge: Category.UNSUPPORTED,
    InvalidTopicName: Category.UNSUPPORTED,
    AccessDenied: Category.SECURITY_ERROR,
    AuthenticationFailed: Category.SECURITY_ERROR,
    AuthenticationRequired: Category.SECURITY_ERROR,
    InternalServerError: Category.INTERNAL_ERROR,
    UnknownServerError: Category.INTERNAL_ERROR,
    StorageError: Category.WRITE_ERROR,
    InvalidMagic: Category.PROTOCOL_VIOLATION,
    VersionMismatch: Category.PROTOCOL_VIOLATION,
}


def category_of(error: ServerError) -> Category:
    """Return what an error that is not worth a plain retry means for a frame."""
    return _CATEGORIES.get(type(error), Category.UNKNOWN)
