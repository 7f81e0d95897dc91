# Makes the place it runs in a host, and becomes its sshd: sh foreign_init.sh ROOT NAME [FOLDER ...]
# FOLDERs of this machine are lent to it, for reading only.
# Its maker has it in namespaces of its own, plugs in its networks after "here", and says "go".
set -e
root=$1
hostname "$2"
shift 2
mount --make-rprivate /
mount --bind "$root" "$root"
cd "$root"

over() { # the machine's folder $1, on which what is written stays here; seen at $2
    mkdir -p "$root.over/$2/upper" "$root.over/$2/work" "./$2"
    mount -t overlay overlay \
        -o "lowerdir=$1,upperdir=$root.over/$2/upper,workdir=$root.over/$2/work" "./$2"
}
over /usr usr
for place in bin sbin lib lib32 lib64 libx32; do
    if [ -L "/$place" ]; then ln -sfn "$(readlink "/$place")" "$place"
    elif [ -d "/$place" ]; then over "/$place" "$place"; fi
done
over /var/lib/dpkg var/lib/dpkg
mkdir -p "$root.over/local"
mount --bind "$root.over/local" usr/local   # what this machine's user put there is not Debian's
rm -f usr/sbin/policy-rc.d                  # nor is a rule that no package may start its service

for lent in "$@"; do
    mkdir -p "./$lent"
    mount --bind "$lent" "./$lent"
    mount -o remount,bind,ro "./$lent"
done

mount -t tmpfs -o mode=755,nosuid,nodev tmpfs run
mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs tmp
mkdir run/sshd run/lock run/user && chmod 1777 run/lock
mount -t proc -o nosuid,nodev,noexec proc proc
mount --bind "$root.boot_id" proc/sys/kernel/random/boot_id
mount -t sysfs -o nosuid,nodev,noexec sysfs sys
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
    mount -t cgroup2 cgroup2 sys/fs/cgroup
else
    mount -t tmpfs -o mode=755 tmpfs sys/fs/cgroup
    for place in /sys/fs/cgroup/*/; do
        kind=$(basename "$place")
        mkdir "sys/fs/cgroup/$kind"
        case $kind in
            unified) mount -t cgroup2 cgroup2 sys/fs/cgroup/unified ;;
            systemd) mount -t cgroup -o none,name=systemd cgroup sys/fs/cgroup/systemd ;;
            *) mount -t cgroup -o "$kind" cgroup "sys/fs/cgroup/$kind" ;;
        esac
    done
fi

mount -t tmpfs -o mode=755,nosuid tmpfs dev
for node in 'null 1 3' 'zero 1 5' 'full 1 7' 'random 1 8' 'urandom 1 9' 'tty 5 0'; do
    set -- $node
    mknod -m 666 "dev/$1" c "$2" "$3"
done
mknod -m 660 dev/loop-control c 10 237
mknod -m 666 dev/fuse c 10 229
i=0
while [ $i -lt 64 ]; do mknod -m 660 "dev/loop$i" b 7 $i; i=$((i+1)); done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts dev/pts
mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs dev/shm
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
ln -s /proc/self/fd/0 dev/stdin
ln -s /proc/self/fd/1 dev/stdout
ln -s /proc/self/fd/2 dev/stderr

echo here
read -r go
[ "$go" = go ]
mkdir -p .old
pivot_root . .old
cd /
umount -l /.old
rmdir /.old
exec /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    /usr/sbin/sshd -D -e < /dev/null > /dev/null
