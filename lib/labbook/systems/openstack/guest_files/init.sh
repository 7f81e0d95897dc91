#!/bin/sh
# The guest's first process: address and key from the config drive, sshd, swap. It ends no
# server in order, so that a reboot is one by the switch.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
drive=/run/config/openstack/latest
echo "labbook: booting"
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /dev/pts /dev/shm /run/config /run/sshd /root/.ssh
mount -t devpts -o gid=5,mode=620 devpts /dev/pts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
ip link set lo up

tries=0     # the drive comes a moment after the first disk
until mount -t iso9660 -o ro /dev/sr0 /run/config 2> /dev/null; do
    tries=$((tries + 1))
    [ $tries -lt 200 ] || { echo "labbook: no config drive"; break; }
    sleep 0.05
done
field() { sed -n "s/.*\"$1\": *\"\([^\"]*\)\".*/\1/p" "$2" | head -n 1; }
address=$(field ip_address $drive/network_data.json)
hostname "$(field hostname $drive/meta_data.json)"
grep -oE '(ssh|ecdsa)-[a-z0-9-]+ [A-Za-z0-9+/=]+' $drive/meta_data.json > /root/.ssh/authorized_keys
net=$(ls /sys/class/net | grep -v '^lo$' | head -n 1)
ip addr add "$address/GUEST_BITS" dev "$net"
ip link set "$net" up
ip route add default via "${address%.*}.1"
printf '127.0.0.1 localhost\n%s %s\n' "$address" "$(hostname)" > /etc/hosts
/usr/sbin/sshd || echo "labbook: no sshd"
echo "labbook: up at $address after $(cut -d' ' -f1 /proc/uptime) s"

# A quarter of the root's room for swap; what a server with too little memory falls to.
room=$(($(df -k --output=avail / | tail -n 1) / 4))
[ "$room" -lt 524288 ] || room=524288
fallocate -l "${room}K" /swap && chmod 600 /swap && mkswap -q /swap > /dev/null && swapon /swap

while :; do sleep 3600 & wait; done
