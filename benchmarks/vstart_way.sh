#!/bin/sh
# A Ceph cluster as Ceph's vstart.sh makes it, with the programs of Debian: one daemon after the other.
#   vstart_way.sh up FOLDER ADDRESS OSDS     returns when the file system has an active metadata server
#   vstart_way.sh down FOLDER
set -eu
folder=$2

down() {
    for file in "$folder"/out/*.pid; do
        [ ! -e "$file" ] || kill -9 "$(cat "$file")" 2>/dev/null || true
    done
    rm -rf "$folder"
}

configure() {
    cat > ceph.conf <<CONF
[global]
    fsid = $(cat /proc/sys/kernel/random/uuid)
    mon_host = [v2:$address:40000,v1:$address:40001]
    osd_pool_default_size = 1
    osd_pool_default_min_size = 1
    mon_allow_pool_size_one = true
    osd_pool_default_pg_autoscale_mode = off
    osd_crush_chooseleaf_type = 0
    auth_cluster_required = cephx
    auth_service_required = cephx
    auth_client_required = cephx
    keyring = $folder/keyring
    run_dir = $folder/out
    log_file = $folder/out/\$name.log
    pid_file = $folder/out/\$name.pid
    admin_socket = $folder/out/\$name.asok
    public_addr = $address
    mon_data_avail_warn = 1
    mon_data_avail_crit = 1
[mon]
    mon_data = $folder/dev/mon.\$id
[mds]
    keyring = $folder/dev/mds.\$id/keyring
[osd]
    osd_data = $folder/dev/osd\$id
    keyring = $folder/dev/osd\$id/keyring
    osd_objectstore = bluestore
    bluestore_block_size = 2147483648
    crush_location = root=default host=here
CONF
}

ask() { ceph -c ceph.conf -k keyring "$@"; }

start_mon() {
    ceph-authtool --create-keyring --gen-key --name=mon. keyring --cap mon 'allow *'
    ceph-authtool --gen-key --name=client.admin --cap mon 'allow *' --cap osd 'allow *' --cap mds 'allow *' \
        --cap mgr 'allow *' keyring
    monmaptool --create --clobber --addv a "[v2:$address:40000,v1:$address:40001]" monmap
    ceph-mon --mkfs -c ceph.conf -i a --monmap monmap --keyring keyring
    ceph-mon -i a -c ceph.conf
}

start_osd() {
    mkdir "dev/osd$1"
    uuid=$(cat /proc/sys/kernel/random/uuid)
    secret=$(ceph-authtool --gen-print-key)
    echo "{\"cephx_secret\": \"$secret\"}" > "dev/osd$1/new.json"
    ask osd new "$uuid" -i "dev/osd$1/new.json"
    rm "dev/osd$1/new.json"
    ceph-osd -i "$1" -c ceph.conf --mkfs --key "$secret" --osd-uuid "$uuid"
    printf '[osd.%s]\n\tkey = %s\n' "$1" "$secret" > "dev/osd$1/keyring"
    ceph-osd -i "$1" -c ceph.conf
}

start_mds() {
    mkdir dev/mds.a
    ceph-authtool --create-keyring --gen-key --name=mds.a dev/mds.a/keyring
    ask -i dev/mds.a/keyring auth add mds.a mon 'allow profile mds' osd 'allow *' mds 'allow *'
    ceph-mds -i a -c ceph.conf
    ask osd pool create cephfs.a.meta 16
    ask osd pool create cephfs.a.data 16
    ask fs new a cephfs.a.meta cephfs.a.data
}

if [ "$1" = up ]; then
    address=$3
    mkdir -p "$folder/out" "$folder/dev/mon.a"
    cd "$folder"
    configure
    start_mon
    number=0
    while [ "$number" -lt "$4" ]; do start_osd "$number"; number=$((number + 1)); done
    start_mds
    tries=0
    until ask mds stat | grep -q up:active; do
        tries=$((tries + 1)); [ "$tries" -lt 300 ] || { ask -s; exit 1; }
    done
else
    down
fi
