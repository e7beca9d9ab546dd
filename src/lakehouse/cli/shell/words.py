"""The keywords and functions of SQL that completion offers."""

from __future__ import annotations

KEYWORDS = tuple(
    """
    add all alter analyze and as asc between by case cast create cross delete desc describe distinct drop else end
    except exists explain false first from full group having if in inner insert intersect interval into is join last
    lateral left like limit namespace not null nulls on or order outer overwrite partition partitioned replace right
    select semi set show table tables tblproperties then true truncate union update use using values view when where
    with
    """.split()
)
FUNCTIONS = tuple(
    """
    abs approx_count_distinct array array_agg array_contains avg bool_and bool_or cast ceil coalesce collect_list
    collect_set concat concat_ws corr count count_if current_date current_timestamp date_add date_diff date_format
    date_sub date_trunc day dayofweek dense_rank element_at exp explode first_value floor from_json from_unixtime
    greatest hash hour if ifnull initcap instr isnan lag last_day last_value lead least length ln log10 lower lpad
    ltrim map max md5 median min minute mod month months_between named_struct nullif nvl percentile percentile_approx
    pow quarter rand rank regexp_extract regexp_replace repeat replace reverse round row_number rpad rtrim second
    sequence sha2 size sort_array split sqrt stddev struct substring sum to_date to_json to_timestamp transform trim
    trunc typeof unix_timestamp upper variance weekofyear year
    """.split()
)
WHENS = ("yesterday", "'1 hour ago'", "'1 day ago'", "'1 week ago'")
ENGINES = ("auto", "duckdb", "spark", "trino")
