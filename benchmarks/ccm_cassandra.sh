#!/bin/sh
# bin/cassandra of a folder that ccm installs from: starts the node as the tarball's does, in the background, with
# Java's options from the file `java_options` there. ccm gives -p FILE, -R and properties.
set -eu
pid_file= properties=
while [ $# -gt 0 ]; do
    case $1 in
        -p) pid_file=$2; shift ;;
        -D*) properties="$properties $1" ;;
    esac
    shift
done
cd "$CASSANDRA_CONF/.."
# shellcheck disable=SC2086
java -Dcassandra.config="file://$CASSANDRA_CONF/cassandra.yaml" -Dcassandra.storagedir="$PWD" $properties \
    ${JVM_EXTRA_OPTS:-} "@$CASSANDRA_HOME/java_options" org.apache.cassandra.service.CassandraDaemon \
    < /dev/null > logs/java.log 2>&1 &
echo $! > "$pid_file"
