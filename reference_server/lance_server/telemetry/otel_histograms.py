"""Histograms for OpenTelemetry, from distributions that are counted already.

The OpenTelemetry API has no instrument that reads a finished histogram, and counting each value
once more would cost the hot path. So they are added to what is exported.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricExporter,
    MetricExportResult,
    MetricsData,
)

from lance_server.telemetry.distribution import Distribution

_NANOSECONDS: Final = "ns"
_NOT_KEPT: Final = cast("float", None)
"""The least and the largest value: optional in the protocol, not kept by a distribution."""


@dataclass(frozen=True, slots=True)
class HistogramSource:
    """One histogram that is exported.

    Attributes:
        name: of the metric.
        meaning: what it counts, one sentence.
        unit: of the values.
        by_operation: the values, by the attribute ``op``; one without a name has no attribute.
    """

    name: str
    meaning: str
    unit: str
    by_operation: Mapping[str, Distribution]


def latency(name: str, meaning: str, by_operation: Mapping[str, Distribution]) -> HistogramSource:
    """Return the histogram of a time in nanoseconds."""
    return HistogramSource(name, meaning, _NANOSECONDS, by_operation)


class HistogramsAdded(MetricExporter):
    """Adds histograms to what another exporter sends.

    Args:
        inner: sends everything.
        sources: the histograms.
    """

    def __init__(self, inner: MetricExporter, sources: Sequence[HistogramSource]) -> None:
        super().__init__(
            preferred_temporality=inner._preferred_temporality,  # noqa: SLF001 - no public reader
            preferred_aggregation=inner._preferred_aggregation,  # noqa: SLF001 - likewise
        )
        self._inner = inner
        self._sources = sources
        self._begun = time.time_ns()

    def export(
        self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: Any
    ) -> MetricExportResult:
        """Send what was measured, and the histograms with it."""
        resource, *resources = metrics_data.resource_metrics
        scope, *scopes = resource.scope_metrics
        whole = replace(scope, metrics=[*scope.metrics, *map(self._metric, self._sources)])
        first = replace(resource, scope_metrics=[whole, *scopes])
        return self._inner.export(
            replace(metrics_data, resource_metrics=[first, *resources]), timeout_millis, **kwargs
        )

    def _metric(self, source: HistogramSource) -> Metric:
        points = [self._point(*each) for each in source.by_operation.items()]
        data = Histogram(points, AggregationTemporality.CUMULATIVE)
        return Metric(source.name, source.meaning, source.unit, data)

    def _point(self, operation: str, values: Distribution) -> HistogramDataPoint:
        counts, total = values.counts()
        return HistogramDataPoint(
            attributes={"op": operation} if operation else {},
            start_time_unix_nano=self._begun,
            time_unix_nano=time.time_ns(),
            count=sum(counts),
            sum=total,
            bucket_counts=counts,
            explicit_bounds=list(values.bounds),
            min=_NOT_KEPT,
            max=_NOT_KEPT,
        )

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        """Send what the other exporter holds."""
        return self._inner.force_flush(timeout_millis)

    def shutdown(self, timeout_millis: float = 30_000, **kwargs: Any) -> None:
        """End the other exporter."""
        self._inner.shutdown(timeout_millis, **kwargs)
