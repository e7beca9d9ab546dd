with per_day as (
  select
    month,
    pickup_date,
    count(*) as trips,
    coalesce(sum(cast(passenger_count as bigint)), 0) as passengers,
    {{ total('trip_distance') }} as distance_miles,
    {{ total('fare_amount') }} as fares,
    {{ total('tip_amount') }} as tips,
    {{ total('tolls_amount') }} as tolls,
    {{ total('total_amount') }} as revenue,
    cast(sum(duration_seconds) as decimal(18, 0)) as seconds
  from {{ ref('stg_yellow_trips') }}
  where {{ asked_months() }}
  group by month, pickup_date
)

select
  month,
  pickup_date,
  trips,
  passengers,
  distance_miles,
  fares,
  tips,
  tolls,
  revenue,
  {{ average('distance_miles') }} as avg_distance_miles,
  {{ average('fares') }} as avg_fare,
  {{ average('tips') }} as avg_tip,
  {{ average('revenue') }} as avg_revenue,
  {{ average('seconds', 'trips * 60') }} as avg_duration_minutes
from per_day
