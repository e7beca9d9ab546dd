{# A schema is called what the model says, without the target's in front: dbt_silver is dbt_silver on every engine. #}
{% macro generate_schema_name(custom_schema_name, node) -%}
  {{ (custom_schema_name or target.schema) | trim }}
{%- endmacro %}
