{# The months that were asked for, as a condition; true if none were. #}
{% macro asked_months() -%}
  {%- set months = var('months') -%}
  {%- if months -%}
    {%- for month in months if not modules.re.fullmatch('[0-9]{4}-[0-9]{2}', month) -%}
      {{ exceptions.raise_compiler_error(month ~ ' is not a month. Write them as 2026-01.') }}
    {%- endfor -%}
    month in ('{{ months | join("', '") }}')
  {%- else -%}
    true
  {%- endif -%}
{%- endmacro %}

{# Of an input with ingested_at: the months that were asked for, or else those that have rows newer than ours. #}
{% macro months_to_make(from_relation) -%}
  {%- if not var('months') and is_incremental() -%}
    month in (
      select source.month from {{ from_relation }} as source
      left join (select month, max(ingested_at) as ingested_at from {{ this }} group by month) as ours
        on ours.month = source.month
      where ours.month is null or source.ingested_at > ours.ingested_at
    )
  {%- else -%}
    {{ asked_months() }}
  {%- endif -%}
{%- endmacro %}
