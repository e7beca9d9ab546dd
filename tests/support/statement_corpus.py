"""A corpus of statements: those that the guard must refuse in each dialect, and everyday ones that it must allow."""

from __future__ import annotations

#: Statements in Spark's SQL that delete files of other refs, leave the lake, run code or cannot be classified.
REFUSED_SPARK = """
call lake.system.expire_snapshots('shop.t')
call lake.system.expire_snapshots(table => 'shop.t', older_than => timestamp '2100-01-01 00:00:00', retain_last => 1)
CALL `lake`.`system`.`expire_snapshots`('shop.t')
call system.expire_snapshots('shop.t')
call lake.system.remove_orphan_files(table => 'shop.t')
call lake.system.remove_orphan_files(table => 'shop.t', location => '/tmp/elsewhere')
call lake.system.migrate('shop.t')
call lake.system.snapshot('shop.t', 'shop.u')
call lake.system.add_files(table => 'shop.t', source_table => '`parquet`.`/tmp/x`')
call lake.system.register_table(table => 'shop.u', metadata_file => '/tmp/x.metadata.json')
call lake.system.rewrite_table_path(table => 'shop.t', source_prefix => 'a', target_prefix => 'b')
call run_clean(table => 'shop.h', retain_commits => 1)
call run_rollback(table => 'shop.h')
call spark_catalog.system.run_clean(table => 'shop.h')
call run_clustering(table => 'shop.h')
call run_compaction(op => 'run', table => 'shop.h')
call drop_partition(table => 'shop.h')
call delete_marker(table => 'shop.h', instant_time => '1')
call delete_savepoint(table => 'shop.h')
call rollback_to_savepoint(table => 'shop.h')
call rollback_to_instant(table => 'shop.h', instant_time => '1')
call hdfs_parquet_import(table => 'shop.h')
call truncate_table(table => 'shop.h')
call run_bootstrap(table => 'shop.h')
call copy_to_temp_view(table => 'shop.h', view_name => 'v')
call copy_to_table(table => 'shop.h', new_table => 'shop.u')
call anything()
call
alter table shop.t set tblproperties ('gc.enabled' = 'true')
alter table shop.t set tblproperties (gc.enabled = true)
alter table shop.t set tblproperties (`gc.enabled` = true)
alter table shop.t set tblproperties ('GC.Enabled' = 'true')
alter table shop.t set tblproperties ('owner' = 'me', 'gc.enabled' = 'true')
alter table shop.t set tblproperties ('gc.enabled' 'true')
alter table shop.t set tblproperties ('\\u0067c.enabled' = 'true')
alter table shop.t set tblproperties ('write.metadata.delete-after-commit.enabled' = 'true')
alter table shop.t set tblproperties ('write.data.path' = '/tmp/elsewhere')
alter table shop.t set tblproperties ('write.metadata.path' = '/tmp/elsewhere')
alter table shop.t set tblproperties ('write.folder-storage.path' = '/tmp/elsewhere')
alter table shop.t set tblproperties ('write.object-storage.path' = 's3a://elsewhere')
alter table shop.t set tblproperties ('write.location-provider.impl' = 'x.Y')
alter table shop.t set tblproperties ('history.expire.max-snapshot-age-ms' = '1')
alter table shop.t set tblproperties ('history.expire.min-snapshots-to-keep' = '1')
alter table shop.t set tblproperties ('location' = '/tmp/elsewhere')
alter table shop.t set tblproperties ('path' = '/tmp/elsewhere')
alter table shop.t set tblproperties ('metadata_location' = '/tmp/x')
alter table shop.t set tblproperties ('external.table.purge' = 'true')
alter table shop.t set tblproperties ('hoodie.cleaner.commits.retained' = '1')
alter table shop.t set tblproperties ('hoodie.keep.min.commits' = '1')
alter table shop.t set tblproperties ('engine.hive.enabled' = 'true')
alter table shop.t unset tblproperties ('gc.enabled')
alter table shop.t set location '/tmp/elsewhere'
alter table shop.t add files from '/tmp/x'
alter table shop.t add partition (id = 1) location '/tmp/x'
alter table shop.t drop partition (id = 1)
alter table shop.t drop if exists partition (id = 1) purge
alter table shop.t partition (id = 1) set location '/tmp/x'
alter table shop.t recover partitions
alter table shop.t set serde 'x'
alter table shop.t execute expire_snapshots
alter database shop set location '/tmp/x'
alter view shop.w as select * from read_text('/etc/passwd')
alter schema shop set dbproperties ('a' = 'b')
alter namespace shop set location '/tmp/x'
create table shop.u (id int) using iceberg location '/tmp/elsewhere'
create table shop.u (id int) location 's3a://elsewhere/u'
create table shop.u (id int) tblproperties ('gc.enabled' = 'true')
create table shop.u (id int) options ('path' = '/tmp/x')
create table shop.u using hudi options (path '/tmp/x') as select 1 as id
create table shop.u using hudi tblproperties ('hoodie.cleaner.commits.retained' = '1') as select 1 as id
create table shop.u (id int) tblproperties ('write.metadata.delete-after-commit.enabled' = 'true')
create external table shop.u (id int) location '/tmp/x'
create table shop.u like shop.t location '/tmp/x'
create table shop.u (id int) stored as parquet
create table shop.u (id int) row format delimited fields terminated by ','
create temporary view v using parquet options (path '/tmp/x')
create or replace temporary view v using csv options (path '/etc/passwd')
create temporary table v as select 1
create global temporary view v using jdbc options (url 'x')
create function f as 'x.Y' using jar '/tmp/x.jar'
create temporary function f as 'x.Y'
create function f(x int) returns int return x + 1
create schema u location '/tmp/elsewhere'
create namespace u location '/tmp/elsewhere'
create index i on shop.t (id)
drop schema shop cascade
drop namespace shop cascade
drop database if exists shop cascade
drop function f
drop index i on shop.t
insert overwrite directory '/tmp/x' using parquet select * from shop.t
insert overwrite local directory '/tmp/x' select 1
insert into parquet.`/tmp/x` select 1
insert into `/tmp/x` select 1
load data inpath '/tmp/x' into table shop.t
load data local inpath '/tmp/x' overwrite into table shop.t
export table shop.t to '/tmp/x'
copy shop.t to '/tmp/x'
copy into shop.t from '/tmp/x'
vacuum shop.t
vacuum shop.t retain 0 hours
optimize shop.t
restore table shop.t to version as of 1
msck repair table shop.t
repair table shop.t
add jar '/tmp/x.jar'
add file '/tmp/x'
add archive '/tmp/x'
list jars
list files
list jar '/tmp/x'
set
set -v
set spark.sql.catalog.lake.warehouse = '/tmp/x'
set spark.sql.catalog.other = org.apache.iceberg.spark.SparkCatalog
set spark.hadoop.fs.s3a.secret.key
set spark.sql.extensions = x
set spark.sql.variable.substitute = true
set `spark.sql.catalog.lake.type` = hadoop
set spark.sql.runSQLOnFiles = true
set spark.sql.warehouse.dir = /tmp/x
set hoodie.cleaner.commits.retained = 1
set env:HOME
set var x = (select reflect('java.lang.System', 'getenv'))
set variable x = (select value from text.`/etc/passwd` limit 1)
alter table shop.t add column y string default java_method('java.lang.System', 'getenv')
call lake.system.rewrite_data_files(table => reflect('a', 'b'))
reset spark.sql.catalog.lake
!ls
dfs -ls /
source /tmp/x.sql
execute immediate 'drop table shop.t'
begin delete from shop.t; end
select 1; drop table shop.t
select 1 ; ; delete from shop.t
with d as (delete from shop.t) select 1
select transform(id) using 'cat' as (x) from shop.t
from shop.t select transform(id) using 'cat'
from shop.t map id using 'cat' as x
select reflect('java.lang.Runtime', 'getRuntime')
select `reflect`('java.lang.System', 'getenv')
select java_method('java.lang.System', 'exit', 0)
select try_reflect('java.lang.System', 'getenv')
select id from shop.t where reflect('a', 'b') = 1
select transform(array(1), x -> reflect('a', 'b'))
select * from parquet.`/tmp/x`
select * from csv.`/etc/passwd`
select * from text.`/etc/passwd`
select * from `/etc/passwd`
select * from '/etc/passwd'
select * from 'passwd.csv'
select * from read_csv('/etc/passwd')
select * from read_parquet('/tmp/x')
select * from read_text('/etc/passwd')
select * from read_blob('/etc/passwd')
select * from glob('/etc/*')
select * from query('drop table shop.t')
select * from query_table('shop.t')
select * from iceberg_scan('/tmp/x')
select * from parquet_scan('/tmp/x')
select * from sqlite_scan('/tmp/x', 'y')
select * from postgres_query('x', 'drop table y')
select * from duckdb_settings()
select * from duckdb_secrets()
select getenv('HOME')
select current_setting('secret_directory')
select * from pragma_database_list()
select * from shop.t, lateral read_text('/etc/passwd')
select * from some_function('x')
explain select * from read_text('/etc/passwd')
explain extended call lake.system.expire_snapshots('shop.t')
explain
grant select on table shop.t to public
revoke select on table shop.t from public
kill 1
attach '/tmp/x' as y
detach y
install httpfs
load httpfs
pragma database_list
checkpoint
use lake.shop; drop table shop.t
refresh '/tmp/x'
cache table v options ('storageLevel' 'DISK_ONLY') as select reflect('a', 'b')
commit
rollback
deallocate x
prepare p as delete from shop.t
lock tables shop.t
unlock tables
""".strip().splitlines()

#: Statements in Trino's SQL.
REFUSED_TRINO = """
alter table lake.shop.t execute expire_snapshots(retention_threshold => '0s')
alter table lake.shop.t execute remove_orphan_files(retention_threshold => '0s')
alter table shop.t execute "expire_snapshots"
alter table lake.shop.t execute drop_extended_stats
alter table lake.shop.t execute add_files(location => 's3://x', format => 'PARQUET')
alter table lake.shop.t execute add_files_from_table(schema_name => 'a', table_name => 'b')
alter table lake.shop.t set properties extra_properties = map(array['gc.enabled'], array['true'])
alter table lake.shop.t set properties location = 's3://x'
alter table lake.shop.t set properties data_location = 's3://x'
alter table lake.shop.t set properties object_store_layout_enabled = true, max_previous_versions = 1
alter table lake.shop.t set properties delete_after_commit_enabled = true
alter table lake.shop.t set authorization x
alter table oltp.public.users drop column name
alter schema lake.shop rename to u
alter schema lake.shop set authorization x
create table lake.shop.u (id int) with (location = 's3://x')
create table lake.shop.u (id int) with (extra_properties = map(array['gc.enabled'], array['true']))
create table lake.shop.u with (delete_after_commit_enabled = true) as select 1 id
create table oltp.public.u (id int)
create schema lake.u with (location = 's3://x')
create schema oltp.u
create materialized view lake.shop.m as select 1 as x
drop materialized view lake.shop.m
create function f(x int) returns int return x
create role x
create catalog x using memory
drop catalog lake
drop schema lake.shop cascade
drop table oltp.public.users
drop table audit.shop.t
drop role x
truncate table oltp.public.users
delete from oltp.public.users
delete from audit.shop.t
insert into oltp.public.users values (1)
update oltp.public.users set id = 1
merge into oltp.public.users u using lake.shop.t t on u.id = t.id when matched then delete
call lake.system.register_table('shop', 't', 's3://x')
call lake.system.unregister_table('shop', 't')
call lake.system.expire_snapshots('shop', 't')
call lake.system.remove_orphan_files('shop', 't')
call oltp.system.execute('drop table users')
call system.runtime.kill_query('x')
set session lake.expire_snapshots_min_retention = '0s'
set session lake.remove_orphan_files_min_retention = '0s'
set role admin
set path x
reset session x
prepare p from delete from lake.shop.t
execute p
deallocate prepare p
execute immediate 'delete from lake.shop.t'
explain analyze drop table lake.shop.t
explain analyze alter table lake.shop.t execute expire_snapshots
select * from table(oltp.system.query(query => 'drop table users'))
select * from table(system.query(query => 'x'))
grant select on lake.shop.t to x
revoke select on lake.shop.t from x
deny select on lake.shop.t to x
start transaction
commit
rollback
use lake.shop
with function f(x int) returns int return x select f(1)
""".strip().splitlines()

ALLOWED_SPARK = """
select 1
select * from shop.t
select id, count(*) as n from shop.t group by id having count(*) > 1 order by n desc limit 3
select t.id from shop.t t join shop.u u on t.id = u.id where u.name like 'a%'
select /*+ broadcast(u) */ t.id from shop.t t join shop.u u on t.id = u.id
-- a comment\\nselect id from shop.t
/* a comment */ select id from shop.t where name = '/* no comment */'
select id from shop.t -- the end
with a as (select 1 as x), b as (select x + 1 as y from a) select * from a, b
select sum(id) over (partition by name order by id rows between 1 preceding and current row) from shop.t
select * from shop.t version as of 1
select * from shop.t timestamp as of '2026-01-01'
select * from shop.t for system_version as of 1
select * from shop.t.snapshots
select * from shop.t.files
select explode(array(1, 2)) as x
select * from shop.t lateral view explode(array(1, 2)) e as x
select * from range(10)
select * from shop.t pivot (sum(id) for name in ('a', 'b'))
select date_trunc('month', current_timestamp()), to_json(struct(1 as a)), filter(array(1, 2), x -> x > 1)
select cast(id as string), id::string, try_cast(name as int) from shop.t
select case when id > 1 then 'a' else 'b' end, coalesce(name, 'x'), md5(name) from shop.t
select approx_count_distinct(id), percentile(id, 0.5), collect_list(name) from shop.t
select id from shop.t union all select id from shop.u
select id from shop.t intersect select id from shop.u
select id from shop.t minus select id from shop.u
select * from (values (1, 'a'), (2, 'b')) as v(id, name)
values (1), (2)
(select 1) union (select 2)
from shop.t select id
select exists(select 1 from shop.u where u.id = 1) from shop.t
select * from shop.t where id in (select id from shop.u)
select * from shop.t tablesample (10 percent)
select regexp_replace(name, 'a', 'b'), split(name, ','), concat_ws('-', name, id) from shop.t
insert into shop.t values (1, 'a')
insert into shop.t (id, name) select id, name from shop.u
insert overwrite shop.t select * from shop.u
insert into shop.t select * from shop.u where id = 1
update shop.t set name = 'b' where id = 1
delete from shop.t where id = 1
merge into shop.t t using shop.u u on t.id = u.id when matched then update set * when not matched then insert *
merge into shop.t t using (select * from shop.u) u on t.id = u.id when matched and u.name = 'x' then delete
create table shop.v (id int, name string)
create table if not exists shop.v (id int not null, at timestamp comment 'when') using iceberg partitioned by (days(at))
create table shop.v using iceberg tblproperties ('write.format.default' = 'parquet', 'owner' = 'me') as select 1 as id
create or replace table shop.v as select * from shop.t
create table shop.h (id int, name string, ts int) using hudi tblproperties (primaryKey = 'id', preCombineField = 'ts')
create table shop.v (id int, name string) partitioned by (bucket(4, id), truncate(3, name))
create view shop.w as select * from shop.t
create or replace temporary view x as select * from shop.t
create schema u
create namespace if not exists u
drop table shop.t
drop table if exists shop.t
drop view if exists shop.w
drop schema u
truncate table shop.t
alter table shop.t add column x int
alter table shop.t add columns (x int, y string)
alter table shop.t drop column x
alter table shop.t rename column x to y
alter table shop.t alter column x type bigint
alter table shop.t alter column x comment 'a'
alter table shop.t alter column x first
alter table shop.t rename to shop.z
alter table shop.t add partition field bucket(4, id)
alter table shop.t drop partition field id
alter table shop.t replace partition field a with b
alter table shop.t write ordered by id
alter table shop.t create tag x
alter table shop.t create branch x retain 7 days
alter table shop.t drop tag x
alter table shop.t set identifier fields id
alter table shop.t set tblproperties ('write.target-file-size-bytes' = '1000000', 'comment' = 'x')
alter table shop.t unset tblproperties ('comment')
call lake.system.rollback_to_snapshot('shop.t', 1)
call lake.system.set_current_snapshot(table => 'shop.t', snapshot_id => 1)
call lake.system.rewrite_data_files(table => 'shop.t', strategy => 'sort', sort_order => 'id')
call lake.system.rewrite_manifests('shop.t')
call lake.system.ancestors_of('shop.t')
show tables in shop
show create table shop.t
show tblproperties shop.t
describe shop.t
describe table extended shop.t
describe namespace shop
explain select * from shop.t
explain formatted select * from shop.t
set spark.sql.shuffle.partitions = 4
set spark.sql.session.timeZone = UTC
set time zone 'UTC'
reset
cache table shop.t
uncache table shop.t
refresh table shop.t
comment on table shop.t is 'x'
analyze table shop.t compute statistics
declare variable x int default 1
""".strip().splitlines()

ALLOWED_TRINO = """
select * from lake.shop.t
select * from shop.t
select t.id, u.name from shop.t t join oltp.public.users u on t.id = u.id
select * from lake.shop."t$snapshots"
select * from shop.t for version as of 1
select * from unnest(array[1, 2]) as u(x)
select * from table(sequence(start => 1, stop => 3))
select * from table(lake.system.table_changes('shop', 't', 1, 2))
with a as (select 1 x) select * from a
values 1, 2
table shop.t
insert into shop.t values (1, 'a')
update shop.t set name = 'b' where id = 1
delete from lake.shop.t where id = 1
merge into shop.t t using oltp.public.users u on t.id = u.id when matched then delete
create table lake.shop.v (id int) with (format = 'PARQUET', partitioning = array['id'])
create table shop.v as select 1 as id
create or replace table shop.v as select 1 as id
create view shop.w as select 1 as x
create schema lake.u
drop table lake.shop.t
drop table if exists shop.t
truncate table shop.t
alter table shop.t add column x int
alter table shop.t drop column x
alter table shop.t rename column x to y
alter table shop.t execute optimize
alter table shop.t execute optimize(file_size_threshold => '10MB')
alter table shop.t set properties partitioning = array['id']
call lake.system.rollback_to_snapshot('shop', 't', 1)
show catalogs
show tables from lake.shop
show create table shop.t
show stats for shop.t
describe shop.t
explain select * from shop.t
explain analyze select * from shop.t
comment on table shop.t is 'x'
analyze shop.t
""".strip().splitlines()
