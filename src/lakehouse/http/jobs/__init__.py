"""Jobs: ingests and runs that outlive their request, each in a process of its own, with records that survive a restart."""
