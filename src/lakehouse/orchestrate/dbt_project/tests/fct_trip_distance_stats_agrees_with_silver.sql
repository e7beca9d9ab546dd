-- Rows of this are months whose trips or revenue differ from silver's.
{{ disagreements(ref('fct_trip_distance_stats'), ref('stg_yellow_trips')) }}
