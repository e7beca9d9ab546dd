#!/usr/bin/env bash
# Scores an Iceberg REST catalog server with Apache Iceberg's own REST Compatibility Kit (RCK).
#
#   run-rck.sh [options] URI [key=value ...]
#
#   URI          base of the catalog, without /v1 (http://127.0.0.1:8181, http://127.0.0.1:19120/iceberg)
#   key=value    property of the REST client or of the kit, e.g.
#                  warehouse=NAME  prefix=P  token=T  credential=ID:SECRET  header.X-Y=Z  s3.endpoint=...
#                  view-endpoints-supported=true           for servers that serve views but send no "endpoints" in /v1/config
#                  rck.requires-namespace-create=true      tables need their namespace made first        (default true here; see --kit-defaults)
#                  rck.supports-serverside-retry=true      the server re-applies a commit that still fits (default true)
#                  rck.overrides-requested-location=false  the server ignores the location asked for      (default false)
#                  rck.supports-names-with-dot=false       "new.db" is a legal name                       (default false)
#                  rck.purge-test-namespaces=true          the kit drops its namespaces before each test  (default true)
#                and, beyond the plain kit, which fixes them (a note in the output says so):
#                  rck.supports-nested-namespaces=true  rck.supports-names-with-slashes=true  rck.supports-empty-namespace=true
#                  rck.base-location=s3://bucket/x         where tests ask tables and views to be placed (the kit: file:/tmp, so a
#                                                          server on S3 that honours locations fails those tests without it)
#   --tables     only the table kit          --views      only the view kit
#   --only RE    only test methods that match RE
#   --out DIR    where results go (default: ./rck-results)
#   --clean      first drop the kit's namespaces WITH ALL THEY HOLD: ns newdb ns1 ns2 other_ns a newdb_1 newdb_2 ns_1 ns_2 parent
#                new/db new.db non-existing non_existing; without it the presence of any of them stops the run
#   --isolate    drop what earlier tests left, nested namespaces too, before each test (stops one failure from causing others;
#                not what the plain kit does)
#   --kit-defaults  do not set rck.requires-namespace-create=true (the bare kit then takes false for tables, true for views)
#   --prepare    only download and compile
#
# Last line: RCK: P passed, F failed, S skipped of N.  Exit: 0 none failed, 1 some failed, 2 not run.
# Environment: RCK_VERSION (Iceberg version of the kit; default in pom.xml), RCK_CACHE (jars; default rck/ in LAKE_CACHE or ~/.cache/lakehouse),
#   RCK_JAVA_HOME (JDK 17 to 23: Hadoop's client does not run on 24 and later), RCK_TEST_TIMEOUT (seconds a test; 180), MVN.
#   CATALOG_* variables are read by the kit itself (CATALOG_A__B_C=v is a-b.c=v).
# The first run downloads about 140 MB with Maven; later runs need no network and no Maven.
set -euo pipefail
here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
uri= kits=tables,views only= out= clean=false isolate=false prepare=false props=()
defaults=(-Drck.requires-namespace-create=true)
while [ $# -gt 0 ]; do
  case $1 in
    --tables) kits=tables;; --views) kits=views;;
    --only) only=$2; shift;; --out) out=$2; shift;;
    --clean) clean=true;; --isolate) isolate=true;; --kit-defaults) defaults=();; --prepare) prepare=true;;
    -h|--help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit 0;;
    -*) echo "run-rck.sh: unknown option $1" >&2; exit 2;;
    rck.local=*) echo "run-rck.sh: rck.local is always false here" >&2; exit 2;;
    *=*) if [ -z "$uri" ] && [[ $1 == http*://* ]]; then uri=$1; else props+=("-D$1"); fi;;
    *) uri=$1;;
  esac
  shift
done
[ -n "$uri" ] || $prepare || { echo "usage: run-rck.sh [options] URI [key=value ...]   (--help)" >&2; exit 2; }

# a JDK from 17 to 23
jdk=
for j in "${RCK_JAVA_HOME:-}" "${JAVA_HOME:-}" "$(dirname "$(dirname "$(readlink -f "$(command -v javac || echo /x/x)")")")" /usr/lib/jvm/*17* /usr/lib/jvm/*21*; do
  [ -n "$j" ] && [ -x "$j/bin/javac" ] || continue
  m=$("$j/bin/javac" -version 2>&1 | sed 's/[^0-9]*\([0-9]*\).*/\1/')
  if [ "$m" -ge 17 ] && [ "$m" -le 23 ]; then jdk=$j; break; fi
done
[ -n "$jdk" ] || { echo "RCK: not run: no JDK 17 to 23 found. Install one (Debian: openjdk-17-jdk-headless) or set RCK_JAVA_HOME."; exit 2; }

version=${RCK_VERSION:-$(sed -n 's:.*<iceberg.version>\(.*\)</iceberg.version>.*:\1:p' "$here/pom.xml")}
cache=${RCK_CACHE:-${LAKE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/lakehouse}/rck}
lib=$cache/lib-$version classes=$cache/classes-$version
if [ ! -f "$lib/.complete" ]; then
  command -v "${MVN:-mvn}" > /dev/null || { echo "RCK: not run: the first run fetches the kit with Maven, which is missing. Install it (Debian: maven) or set MVN."; exit 2; }
  rm -rf "$lib"; mkdir -p "$lib"
  echo "downloading the kit ($version) into $lib ..." >&2
  JAVA_HOME=$jdk ${MVN:-mvn} -B -q -f "$here/pom.xml" "-Diceberg.version=$version" dependency:copy-dependencies "-DoutputDirectory=$lib" >&2 \
    || { echo "RCK: not run: Maven could not fetch the kit $version"; exit 2; }
  touch "$lib/.complete"
fi
if [ ! -f "$classes/RckMain.class" ] || [ -n "$(find "$here/src" -name '*.java' -newer "$classes/RckMain.class")" ]; then
  mkdir -p "$classes"
  "$jdk/bin/javac" -nowarn -proc:none -cp "$lib/*" -d "$classes" "$here"/src/*.java 2> "$classes/javac.log" || { cat "$classes/javac.log" >&2; echo "RCK: not run: compile error"; exit 2; }
fi
if $prepare; then echo "ready: $lib"; exit 0; fi

out=${out:-$PWD/rck-results}; mkdir -p "$out"; out=$(cd "$out" && pwd)
rm -f "$out"/TEST-rck-*.xml "$out"/results.tsv
cd "$out" # tests that use relative paths write here
# the URI comes last so that nothing overrides it; AWS region only fills a gap of the S3 client
AWS_REGION=${AWS_REGION:-us-east-1} exec "$jdk/bin/java" -Xmx${RCK_HEAP:-1g} \
  -Dorg.slf4j.simpleLogger.logFile="$out/client.log" -Dorg.slf4j.simpleLogger.defaultLogLevel=warn \
  "${defaults[@]}" "${props[@]}" -Drck.local=false "-Duri=${uri%/}" \
  "-Drck.runner.out=$out" "-Drck.runner.kits=$kits" "-Drck.runner.only=$only" -Drck.runner.clean=$clean -Drck.runner.isolate=$isolate \
  "-Drck.runner.timeout=${RCK_TEST_TIMEOUT:-180}" \
  -cp "$classes:$lib/*" RckMain
