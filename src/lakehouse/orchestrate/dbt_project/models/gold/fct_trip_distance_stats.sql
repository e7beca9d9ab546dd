{% set buckets = [(20, '20+'), (10, '10-20'), (5, '5-10'), (2, '2-5'), (1, '1-2')] %}

with bucketed as (
  select
    *,
    case
      {%- for miles, _ in buckets %}
      when trip_distance >= {{ miles }} then {{ miles }}
      {%- endfor %}
      else 0
    end as from_miles
  from {{ ref('stg_yellow_trips') }}
  where {{ asked_months() }}
),

-- Percentiles by counting: few durations are different, so this is far less to sort than the trips.
per_duration as (
  select
    month,
    from_miles,
    duration_seconds,
    count(*) as n,
    sum(fare_amount) as fares,
    sum(total_amount) as revenue,
    sum(trip_distance) as miles
  from bucketed
  group by month, from_miles, duration_seconds
),

reached as (
  select
    *,
    sum(n) over (
      partition by month, from_miles order by duration_seconds rows between unbounded preceding and current row
    ) as so_far,
    sum(n) over (partition by month, from_miles) as all_of_it
  from per_duration
),

stats as (
  select
    month,
    from_miles,
    sum(n) as trips,
    cast(sum(fares) as decimal(18, 2)) as fares,
    cast(sum(revenue) as decimal(18, 2)) as revenue,
    cast(sum(miles) as decimal(18, 2)) as miles,
    min(case when so_far * 10 >= all_of_it * 5 then duration_seconds end) as median_duration_seconds,
    min(case when so_far * 10 >= all_of_it * 9 then duration_seconds end) as p90_duration_seconds
  from reached
  group by month, from_miles
)

select
  month,
  case from_miles
    {%- for miles, name in buckets %}
    when {{ miles }} then '{{ name }}'
    {%- endfor %}
    else '0-1'
  end as distance_bucket,
  from_miles,
  trips,
  revenue,
  {{ average('miles') }} as avg_distance_miles,
  {{ average('fares') }} as avg_fare,
  median_duration_seconds,
  p90_duration_seconds
from stats
