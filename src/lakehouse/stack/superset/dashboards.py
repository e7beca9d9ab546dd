"""The starter dashboards: what the pipelines `market` and `taxi` publish in gold."""

from __future__ import annotations

from typing import Any

from lakehouse.stack.superset.assets import Chart, Dashboard, Dataset, Filter, Metric

_MONEY, _COUNT, _SHORT, _PERCENT = "$,.2f", ",d", ".3s", "+.2%"
_NUMBER_HEIGHT, _CHART_HEIGHT, _TABLE_HEIGHT = 16, 44, 60

_TICKER_DAYS = Dataset(
    "Market: ticker days",
    "SELECT bars.*, bars.close / bars.open - 1 AS change, "
    "bars.close / first_value(bars.close) OVER (PARTITION BY ticker ORDER BY date) - 1 AS since_start, "
    "moves.realised_volatility, moves.gap "
    "FROM lake.gold.daily_bars AS bars LEFT JOIN lake.gold.volatility AS moves USING (ticker, date)",
    {
        "ticker": "VARCHAR",
        "date": "DATE",
        "open": "DECIMAL",
        "high": "DECIMAL",
        "low": "DECIMAL",
        "close": "DECIMAL",
        "volume": "BIGINT",
        "vwap": "DECIMAL",
        "trades": "BIGINT",
        "change": "DOUBLE",
        "since_start": "DOUBLE",
        "realised_volatility": "DOUBLE",
        "gap": "DOUBLE",
    },
    (
        Metric("tickers", "Tickers", "count(DISTINCT ticker)"),
        Metric("days", "Trading days", "count(DISTINCT date)"),
        Metric("shares", "Shares traded", "sum(volume)"),
        Metric("trade_count", "Trades", "sum(trades)"),
        Metric("growth", "Close since the first day", "max_by(since_start, date)", _PERCENT),
        Metric("volatility", "Realised volatility", "avg(realised_volatility)", ".2%"),
        Metric("overnight_gap", "Overnight gap", "avg(gap)", _PERCENT),
    ),
    time="date",
    labels={"realised_volatility": "volatility", "gap": "overnight gap", "change": "open to close"},
)

_DAILY_TRIPS = Dataset(
    "Taxi: days",
    "SELECT * FROM lake.gold.fct_daily_trips",
    {
        "month": "VARCHAR",
        "pickup_date": "DATE",
        "trips": "BIGINT",
        "passengers": "BIGINT",
        "distance_miles": "DECIMAL",
        "fares": "DECIMAL",
        "tips": "DECIMAL",
        "tolls": "DECIMAL",
        "revenue": "DECIMAL",
        "avg_distance_miles": "DECIMAL",
        "avg_fare": "DECIMAL",
        "avg_tip": "DECIMAL",
        "avg_revenue": "DECIMAL",
        "avg_duration_minutes": "DECIMAL",
    },
    (
        Metric("trip_count", "Trips", "sum(trips)"),
        Metric("total_revenue", "Revenue", "sum(revenue)", _MONEY),
        Metric("revenue_per_trip", "Revenue per trip", "sum(revenue) / sum(trips)", _MONEY),
        Metric("miles", "Miles", "sum(distance_miles)", ",.0f"),
        Metric("total_tips", "Tips", "sum(tips)", _MONEY),
    ),
    time="pickup_date",
)

_HOURLY_REVENUE = Dataset(
    "Taxi: hours",
    "SELECT * FROM lake.gold.fct_hourly_revenue",
    {
        "month": "VARCHAR",
        "pickup_date": "DATE",
        "pickup_hour": "INTEGER",
        "trips": "BIGINT",
        "revenue": "DECIMAL",
        "card_revenue": "DECIMAL",
        "cash_revenue": "DECIMAL",
        "other_revenue": "DECIMAL",
        "tips": "DECIMAL",
        "avg_revenue": "DECIMAL",
    },
    (
        Metric("card", "Card", "sum(card_revenue)", _MONEY),
        Metric("cash", "Cash", "sum(cash_revenue)", _MONEY),
        Metric("other", "Other", "sum(other_revenue)", _MONEY),
    ),
    time="pickup_date",
    labels={"pickup_hour": "hour"},
)

_DISTANCES = Dataset(
    "Taxi: distances",
    "SELECT * FROM lake.gold.fct_trip_distance_stats",
    {
        "month": "VARCHAR",
        "distance_bucket": "VARCHAR",
        "from_miles": "INTEGER",
        "trips": "BIGINT",
        "revenue": "DECIMAL",
        "avg_distance_miles": "DECIMAL",
        "avg_fare": "DECIMAL",
        "median_duration_seconds": "BIGINT",
        "p90_duration_seconds": "BIGINT",
    },
    (Metric("trip_count", "Trips", "sum(trips)"),),
    labels={
        "distance_bucket": "miles",
        "avg_fare": "average fare",
        "median_duration_seconds": "median seconds",
        "p90_duration_seconds": "90th percentile seconds",
    },
)


def _number(title: str, dataset: Dataset, metric: str, number_format: str = _COUNT, width: int = 3) -> Chart:
    options = {
        "metric": metric,
        "y_axis_format": number_format,
        "header_font_size": 0.5,
        "subtitle_font_size": 0.15,
        "time_range": "No filter",
    }
    return Chart(title, dataset, "big_number_total", options, width)


def _series(title: str, dataset: Dataset, kind: str, width: int, **options: Any) -> Chart:
    """A chart over an x axis: `x_axis`, `metrics`, and what else differs from the defaults here."""
    defaults = {
        "groupby": [],
        "time_grain_sqla": "P1D",
        "time_range": "No filter",
        "row_limit": 10_000,
        "show_legend": True,
        "legendType": "scroll",
        "legendOrientation": "top",
        "rich_tooltip": True,
        "x_axis_time_format": "%d %b",
        "order_desc": True,
        "truncate_metric": True,
        "show_empty_columns": True,
    }
    return Chart(title, dataset, f"echarts_timeseries_{kind}", {**defaults, **options}, width)


def _rows(title: str, dataset: Dataset, columns: list[str], order_by: list[str], **options: Any) -> Chart:
    defaults = {
        "query_mode": "raw",
        "all_columns": columns,
        "order_by_cols": order_by,
        "row_limit": 1000,
        "page_length": 10,
        "table_timestamp_format": "%Y-%m-%d",
        "time_range": "No filter",
        "include_search": False,
        "show_cell_bars": False,
    }
    return Chart(title, dataset, "table", {**defaults, **options}, width=12)


MARKET = Dashboard(
    "lake-market",
    "Market",
    ("gold.daily_bars", "gold.volatility"),
    (
        (
            _NUMBER_HEIGHT,
            (
                _number("Tickers", _TICKER_DAYS, "tickers"),
                _number("Trading days", _TICKER_DAYS, "days"),
                _number("Shares traded", _TICKER_DAYS, "shares"),
                _number("Trades", _TICKER_DAYS, "trade_count"),
            ),
        ),
        (
            _CHART_HEIGHT,
            (
                _series(
                    "Close since the first day",
                    _TICKER_DAYS,
                    "line",
                    8,
                    x_axis="date",
                    metrics=["growth"],
                    groupby=["ticker"],
                    y_axis_format="+.0%",
                    markerEnabled=True,
                ),
                _series(
                    "Shares traded by ticker",
                    _TICKER_DAYS,
                    "bar",
                    4,
                    x_axis="ticker",
                    metrics=["shares"],
                    orientation="horizontal",
                    x_axis_sort="shares",
                    x_axis_sort_asc=True,
                    y_axis_format=_SHORT,
                    show_legend=False,
                    show_value=True,
                ),
            ),
        ),
        (
            _CHART_HEIGHT,
            (
                _series(
                    "Realised volatility by day",
                    _TICKER_DAYS,
                    "bar",
                    6,
                    x_axis="date",
                    metrics=["volatility"],
                    groupby=["ticker"],
                    y_axis_format=".1%",
                ),
                _series(
                    "Overnight gap by day",
                    _TICKER_DAYS,
                    "bar",
                    6,
                    x_axis="date",
                    metrics=["overnight_gap"],
                    groupby=["ticker"],
                    y_axis_format="+.1%",
                ),
            ),
        ),
        (
            _TABLE_HEIGHT,
            (
                _rows(
                    "Days of each ticker",
                    _TICKER_DAYS,
                    [
                        "date",
                        "ticker",
                        "open",
                        "high",
                        "low",
                        "close",
                        "change",
                        "volume",
                        "vwap",
                        "realised_volatility",
                        "gap",
                    ],
                    ['["date", false]', '["ticker", true]'],
                    column_config={
                        **{name: {"d3NumberFormat": ",.2f"} for name in ("open", "high", "low", "close", "vwap")},
                        **{name: {"d3NumberFormat": _PERCENT} for name in ("change", "gap")},
                        "realised_volatility": {"d3NumberFormat": ".2%"},
                        "volume": {"d3NumberFormat": _COUNT},
                    },
                ),
            ),
        ),
    ),
    (Filter("Time", _TICKER_DAYS), Filter("Ticker", _TICKER_DAYS, "ticker")),
)

TAXI = Dashboard(
    "lake-taxi",
    "Yellow taxi",
    ("gold.fct_daily_trips", "gold.fct_hourly_revenue", "gold.fct_trip_distance_stats"),
    (
        (
            _NUMBER_HEIGHT,
            (
                _number("Trips", _DAILY_TRIPS, "trip_count"),
                _number("Revenue", _DAILY_TRIPS, "total_revenue", _MONEY),
                _number("Revenue per trip", _DAILY_TRIPS, "revenue_per_trip", _MONEY),
                _number("Miles", _DAILY_TRIPS, "miles", ",.0f"),
            ),
        ),
        (
            _CHART_HEIGHT,
            (
                _series(
                    "Trips per day",
                    _DAILY_TRIPS,
                    "line",
                    6,
                    x_axis="pickup_date",
                    metrics=["trip_count"],
                    y_axis_format=_COUNT,
                    show_legend=False,
                ),
                _series(
                    "Revenue per day",
                    _DAILY_TRIPS,
                    "bar",
                    6,
                    x_axis="pickup_date",
                    metrics=["total_revenue"],
                    y_axis_format="$,.0f",
                    show_legend=False,
                ),
            ),
        ),
        (
            _CHART_HEIGHT,
            (
                _series(
                    "Revenue by hour of the day",
                    _HOURLY_REVENUE,
                    "bar",
                    8,
                    x_axis="pickup_hour",
                    metrics=["card", "cash", "other"],
                    stack="Stack",
                    xAxisForceCategorical=True,
                    x_axis_sort="pickup_hour",
                    x_axis_sort_asc=True,
                    y_axis_format="$,.0f",
                ),
                _series(
                    "Trips by distance",
                    _DISTANCES,
                    "bar",
                    4,
                    x_axis="from_miles",
                    metrics=["trip_count"],
                    xAxisForceCategorical=True,
                    x_axis_sort="from_miles",
                    x_axis_sort_asc=True,
                    x_axis_title="miles, from",
                    x_axis_title_margin=30,
                    y_axis_format=_COUNT,
                    show_legend=False,
                    show_value=True,
                ),
            ),
        ),
        (
            _TABLE_HEIGHT,
            (
                _rows(
                    "Distances by month",
                    _DISTANCES,
                    [
                        "month",
                        "distance_bucket",
                        "trips",
                        "revenue",
                        "avg_fare",
                        "median_duration_seconds",
                        "p90_duration_seconds",
                    ],
                    ['["month", false]', '["from_miles", true]'],
                    column_config={
                        **{name: {"d3NumberFormat": _MONEY} for name in ("revenue", "avg_fare")},
                        **{
                            name: {"d3NumberFormat": _COUNT}
                            for name in ("trips", "median_duration_seconds", "p90_duration_seconds")
                        },
                    },
                ),
            ),
        ),
    ),
    (Filter("Time", _DAILY_TRIPS), Filter("Month", _DAILY_TRIPS, "month")),
)

DASHBOARDS = (MARKET, TAXI)
