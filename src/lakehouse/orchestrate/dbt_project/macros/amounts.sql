{# A published double as a decimal; null where it is no number, or too large to be one of these. #}
{% macro fixed(column, digits=12) -%}
  case when abs({{ column }}) <= {{ 9999999999 if digits == 12 else 99999999 }}
    then cast({{ column }} as decimal({{ digits }}, 2)) end
{%- endmacro %}

{# The name of a code; null for one that has none. #}
{% macro named(column, names) -%}
  case {{ column }} {% for code, name in names.items() %} when {{ code }} then '{{ name }}' {% endfor %} end
{%- endmacro %}

{# A sum to the cent; 0 of nothing. #}
{% macro total(expression) -%}
  cast(coalesce(sum({{ expression }}), 0) as decimal(18, 2))
{%- endmacro %}

{% macro average(total, trips='trips') -%}
  cast({{ divided(total, trips, 2) }} as decimal(12, 2))
{%- endmacro %}
