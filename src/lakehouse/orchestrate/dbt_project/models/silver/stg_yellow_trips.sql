{% set payment_types = {0: 'flex fare', 1: 'credit card', 2: 'cash', 3: 'no charge', 4: 'dispute', 5: 'unknown', 6: 'voided'} %}
{% set rate_codes = {1: 'standard', 2: 'JFK', 3: 'Newark', 4: 'Nassau or Westchester', 5: 'negotiated', 6: 'group ride', 99: 'unknown'} %}
{% set amounts = ['fare_amount', 'extra', 'mta_tax', 'tip_amount', 'tolls_amount', 'improvement_surcharge',
                  'total_amount', 'congestion_surcharge', 'airport_fee', 'cbd_congestion_fee'] %}

with published as (
  select * from {{ source('bronze', 'yellow_trips') }}
  where {{ months_to_make(source('bronze', 'yellow_trips')) }}
),

typed as (
  select
    cast(VendorID as int) as vendor_id,
    tpep_pickup_datetime as pickup_at,
    tpep_dropoff_datetime as dropoff_at,
    {{ seconds_between('tpep_pickup_datetime', 'tpep_dropoff_datetime') }} as duration_seconds,
    cast(passenger_count as int) as passenger_count,
    {{ fixed('trip_distance', 10) }} as trip_distance,
    cast(RatecodeID as int) as rate_code_id,
    {{ named('RatecodeID', rate_codes) }} as rate_code,
    case upper(trim(store_and_fwd_flag)) when 'Y' then true when 'N' then false end as store_and_forward,
    cast(PULocationID as int) as pickup_location_id,
    cast(DOLocationID as int) as dropoff_location_id,
    cast(payment_type as int) as payment_type_id,
    {{ named('payment_type', payment_types) }} as payment_type,
    {% for amount in amounts -%}
    {{ fixed(amount) }} as {{ amount }},
    {% endfor -%}
    month,
    source_file,
    ingested_at
  from published
),

-- Refunds and voided trips have negative amounts; the others are times and distances that no trip has.
valid as (
  select * from typed
  where pickup_at is not null
    and total_amount >= 0
    and coalesce(fare_amount, 0) >= 0
    and trip_distance > 0 and trip_distance <= 200
    and dropoff_at > pickup_at
    and duration_seconds between 0 and 86400
    and {{ month_of('pickup_at') }} = month
),

-- Rows that agree in all of these are one trip that was published twice.
ranked as (
  select
    *,
    row_number() over (
      partition by vendor_id, pickup_at, dropoff_at, pickup_location_id, dropoff_location_id, trip_distance,
        payment_type_id, total_amount
      order by ingested_at desc, source_file desc
    ) as place
  from valid
)

select
  vendor_id,
  pickup_at,
  dropoff_at,
  cast(pickup_at as date) as pickup_date,
  cast(hour(pickup_at) as int) as pickup_hour,
  duration_seconds,
  cast({{ divided('cast(duration_seconds as decimal(12, 0))', '60', 2) }} as decimal(12, 2)) as duration_minutes,
  passenger_count,
  trip_distance,
  case when duration_seconds > 0
    then cast({{ divided('trip_distance * 3600', 'duration_seconds', 2) }} as decimal(14, 2)) end as speed_mph,
  rate_code_id,
  rate_code,
  store_and_forward,
  pickup_location_id,
  dropoff_location_id,
  payment_type_id,
  payment_type,
  {{ amounts | join(',\n  ') }},
  case when fare_amount > 0
    then cast({{ divided('tip_amount', 'fare_amount', 4) }} as decimal(16, 4)) end as tip_share,
  month,
  source_file,
  ingested_at
from ranked
where place = 1
