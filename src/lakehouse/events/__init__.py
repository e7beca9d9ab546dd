"""Events of a lake: OpenLineage, a log in JSON, webhooks and traces. None of them can fail a run or slow it down."""
