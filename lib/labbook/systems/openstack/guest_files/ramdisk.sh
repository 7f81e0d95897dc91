#!/bin/busybox sh
# The ramdisk's init: the drivers of a virtual machine's disks and network, then the root on the first disk. Words of
# the kernel's command line that begin with a driver's name and a point are for it, as they are where it is built in.
b=/bin/busybox
$b mount -t devtmpfs none /dev
$b mount -t proc none /proc
read -r line < /proc/cmdline
$b umount /proc
for module in $($b cat /modules/order); do
    words=
    for word in $line; do case $word in "$module".*) words="$words ${word#*.}" ;; esac; done
    $b insmod "/modules/$module.ko" $words
done
tries=0
until [ -b /dev/vda ]; do
    tries=$((tries + 1))
    [ $tries -lt 500 ] || { echo "labbook: no disk vda"; exec $b sh; }
    $b usleep 20000
done
$b mount -t ext4 -o noatime,noinit_itable /dev/vda /root || { echo "labbook: no root on vda"; exec $b sh; }
$b mount --move /dev /root/dev
exec $b switch_root /root /sbin/labbook-init
