-- Rows of this are months whose trips or revenue differ from silver's.
{{ disagreements(ref('fct_daily_trips'), ref('stg_yellow_trips')) }}
