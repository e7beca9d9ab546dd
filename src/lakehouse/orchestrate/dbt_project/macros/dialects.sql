{# What Spark and Trino write differently. #}

{# A quotient of decimals, rounded half up to a number of digits. #}
{% macro divided(over, under, digits) -%}
  {{ return(adapter.dispatch('divided', 'lakehouse')(over, under, digits)) }}
{%- endmacro %}

{% macro default__divided(over, under, digits) -%}
  {# Spark keeps enough digits of a quotient to round it afterwards. #}
  round(({{ over }}) / cast({{ under }} as decimal(12, {{ 2 if digits > 2 else 0 }})), {{ digits }})
{%- endmacro %}

{% macro trino__divided(over, under, digits) -%}
  {# Trino rounds a quotient to the larger scale of both sides at once. #}
  cast({{ over }} as decimal(24, {{ digits }})) / cast({{ under }} as decimal(12, {{ 2 if digits > 2 else 0 }}))
{%- endmacro %}

{# Whole seconds on the wall clock from one time without a zone to another. #}
{% macro seconds_between(start, end) -%}
  {{ return(adapter.dispatch('seconds_between', 'lakehouse')(start, end)) }}
{%- endmacro %}

{% macro default__seconds_between(start, end) -%}
  cast(datediff({{ end }}, {{ start }}) as bigint) * 86400
    + (hour({{ end }}) * 3600 + minute({{ end }}) * 60 + second({{ end }}))
    - (hour({{ start }}) * 3600 + minute({{ start }}) * 60 + second({{ start }}))
{%- endmacro %}

{% macro trino__seconds_between(start, end) -%}
  date_diff('second', date_trunc('second', {{ start }}), date_trunc('second', {{ end }}))
{%- endmacro %}

{# The month of a time, as 2026-01. #}
{% macro month_of(at) -%}
  {{ return(adapter.dispatch('month_of', 'lakehouse')(at)) }}
{%- endmacro %}

{% macro default__month_of(at) -%} date_format({{ at }}, 'yyyy-MM') {%- endmacro %}

{% macro trino__month_of(at) -%} date_format({{ at }}, '%Y-%m') {%- endmacro %}
