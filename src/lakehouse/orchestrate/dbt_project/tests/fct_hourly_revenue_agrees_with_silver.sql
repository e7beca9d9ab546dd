-- Rows of this are months whose trips or revenue differ from silver's.
{{ disagreements(ref('fct_hourly_revenue'), ref('stg_yellow_trips')) }}
