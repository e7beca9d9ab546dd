select vendor_id, pickup_at, dropoff_at, pickup_location_id, dropoff_location_id, trip_distance, payment_type_id, total_amount
from {{ ref('stg_yellow_trips') }}
group by vendor_id, pickup_at, dropoff_at, pickup_location_id, dropoff_location_id, trip_distance, payment_type_id, total_amount
having count(*) > 1
