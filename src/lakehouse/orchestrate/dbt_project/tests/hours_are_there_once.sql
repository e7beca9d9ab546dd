select pickup_date, pickup_hour from {{ ref('fct_hourly_revenue') }} group by pickup_date, pickup_hour having count(*) > 1
