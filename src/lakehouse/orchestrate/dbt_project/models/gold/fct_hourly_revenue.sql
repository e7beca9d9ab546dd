with per_hour as (
  select
    month,
    pickup_date,
    pickup_hour,
    count(*) as trips,
    {{ total('total_amount') }} as revenue,
    {{ total('case when payment_type_id = 1 then total_amount end') }} as card_revenue,
    {{ total('case when payment_type_id = 2 then total_amount end') }} as cash_revenue,
    {{ total('tip_amount') }} as tips
  from {{ ref('stg_yellow_trips') }}
  where {{ asked_months() }}
  group by month, pickup_date, pickup_hour
)

select
  month,
  pickup_date,
  pickup_hour,
  trips,
  revenue,
  card_revenue,
  cash_revenue,
  cast(revenue - card_revenue - cash_revenue as decimal(18, 2)) as other_revenue,
  tips,
  {{ average('revenue') }} as avg_revenue
from per_hour
