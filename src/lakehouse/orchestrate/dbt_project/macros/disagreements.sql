{# The months in which a gold table does not add up to the trips that it was made from. #}
{% macro disagreements(gold, silver) -%}
  with ours as (select month, sum(trips) as trips, sum(revenue) as revenue from {{ gold }} group by month),
  theirs as (select month, count(*) as trips, sum(total_amount) as revenue from {{ silver }} group by month)
  select coalesce(ours.month, theirs.month) as month, ours.trips, theirs.trips as silver_trips
  from ours full outer join theirs on ours.month = theirs.month
  where ours.trips is null or theirs.trips is null or ours.trips <> theirs.trips or ours.revenue <> theirs.revenue
{%- endmacro %}
