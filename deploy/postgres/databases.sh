#!/bin/sh
# Written by `lake stack render`. Runs once, when the server's volume is empty: a database and a user for each.
set -eu
for name in lake hive nessie oltp; do
  password=$(printenv "$(echo "$name" | tr a-z A-Z)_PASSWORD")
  psql -v ON_ERROR_STOP=1 -v name="$name" -v password="$password" -U "$POSTGRES_USER" -d postgres <<'SQL'
CREATE ROLE :"name" LOGIN PASSWORD :'password';
CREATE DATABASE :"name" OWNER :"name";
REVOKE CONNECT ON DATABASE :"name" FROM PUBLIC;
SQL
done
