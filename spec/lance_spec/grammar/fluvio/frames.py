"""Fluvio's frames, headers and the exchange of versions."""

from construct import GreedyBytes, Int16sb, Int16ub, Int32sb

from lance_spec.grammar._composed import Sized
from lance_spec.grammar.fluvio._primitives import STRING, corrected, corrected_message, vec

FRAME = corrected_message(
    "Frame",
    corrected("body", Sized(Int32sb, GreedyBytes), "A request or a response"),
    doc="Carries a request or a response after its length in bytes",
)

REQUEST = corrected_message(
    "Request",
    corrected("api_key", Int16ub, "What is asked for; the two servers use the same numbers"),
    corrected("api_version", Int16sb, "Version that body and response are written in"),
    corrected("correlation_id", Int32sb, "Number that the response repeats; not unique"),
    corrected("client_id", STRING, "Name of the client library; says nothing about who it is"),
    corrected("body", GreedyBytes, "The request's own message"),
    doc="Opens every request",
)

RESPONSE = corrected_message(
    "Response",
    corrected("correlation_id", Int32sb, "Number of the request"),
    corrected("body", GreedyBytes, "The response's own message, in the version of the request"),
    doc="Opens every response",
)

API_VERSIONS_REQUEST = corrected_message(
    "ApiVersionsRequest",
    corrected("client_version", STRING, "Version of the client library"),
    corrected("client_os", STRING, "Operating system of the client"),
    corrected("client_arch", STRING, "Processor of the client"),
    doc="Asks which requests a server knows; key 18 on both servers",
)

API_VERSION_RANGE = corrected_message(
    "ApiVersionRange",
    corrected("api_key", Int16sb, "A request that the server knows"),
    corrected("min_version", Int16sb, "Lowest version it reads"),
    corrected("max_version", Int16sb, "Highest version it reads"),
    doc="One request that a server knows",
)

API_VERSIONS_RESPONSE = corrected_message(
    "ApiVersionsResponse",
    corrected("error_code", Int16sb, "0 unless the request was refused"),
    corrected("api_keys", vec(API_VERSION_RANGE), "The requests that the server knows"),
    corrected("platform_version", STRING, "Version of the server, in three numbers, 0.9.0 or more"),
    doc="Says which requests a server knows",
)

MESSAGES = (
    FRAME,
    REQUEST,
    RESPONSE,
    API_VERSIONS_REQUEST,
    API_VERSION_RANGE,
    API_VERSIONS_RESPONSE,
)
"""Frames, headers and versions, in reading order."""
