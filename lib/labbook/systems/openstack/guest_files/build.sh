# Makes the root of a guest, and an image of it: sh build.sh PACKAGES FOLDER SIZE_MB
# Packages are unpacked, not installed: what their scripts would do for a machine is done here as far
# as a guest needs it.
set -eu
packages=$1 folder=$2 size_mb=$3
root=$folder/root
rm -rf "$root" && mkdir -p "$root"
cd "$root"
mkdir -p usr/bin usr/sbin usr/lib usr/lib64
ln -s usr/bin bin; ln -s usr/sbin sbin; ln -s usr/lib lib; ln -s usr/lib64 lib64
for package in "$packages"/*.deb; do
    case $package in */kernel.deb) continue ;; esac
    dpkg-deb --fsys-tarfile "$package" | tar -xf - --keep-directory-symlink
done
cp usr/bin/busybox "$folder/busybox"
rm -rf usr/share/doc usr/share/man usr/share/locale usr/share/info usr/share/lintian usr/share/bug \
    usr/share/X11 usr/share/i18n usr/lib/x86_64-linux-gnu/gconv usr/share/perl usr/share/perl5 \
    usr/lib/x86_64-linux-gnu/perl usr/share/zoneinfo usr/share/bash-completion var/cache/* usr/bin/busybox
mkdir -p dev proc sys run tmp root/.ssh mnt opt var/tmp
chmod 1777 tmp var/tmp; chmod 700 root root/.ssh

cp usr/share/base-passwd/passwd.master etc/passwd
cp usr/share/base-passwd/group.master etc/group
echo 'sshd:x:101:65534::/run/sshd:/usr/sbin/nologin' >> etc/passwd
sed -i 's#^root:[^:]*:\(.*\):[^:]*$#root:x:\1:/bin/bash#' etc/passwd
sed 's/^\([^:]*\):.*/\1:*:19700:0:99999:7:::/' etc/passwd > etc/shadow
chmod 640 etc/shadow
[ -e etc/mtab ] || ln -s /proc/self/mounts etc/mtab
[ -e usr/bin/awk ] || ln -s mawk usr/bin/awk
[ -e usr/bin/sh ] || ln -s dash usr/bin/sh
for name in mpirun mpiexec; do [ -e usr/bin/$name ] || ln -s orterun usr/bin/$name; done
echo guest > etc/hostname
echo 'hosts: files' > etc/nsswitch.conf
: > etc/resolv.conf
rm -f etc/ssh/ssh_host_*
ssh-keygen -q -t ed25519 -N '' -C guest -f etc/ssh/ssh_host_ed25519_key
cat > etc/ssh/sshd_config <<'EOF'
HostKey /etc/ssh/ssh_host_ed25519_key
PermitRootLogin prohibit-password
PasswordAuthentication no
UsePAM no
UseDNS no
MaxStartups 100:30:200
Subsystem sftp /usr/lib/openssh/sftp-server
EOF
printf 'Host *\n    StrictHostKeyChecking no\n    UserKnownHostsFile /dev/null\n    LogLevel ERROR\n' \
    > etc/ssh/ssh_config
install -m 755 "$folder/init.sh" usr/sbin/labbook-init
chroot . /sbin/ldconfig

cd "$folder"
rm -f root.raw
truncate -s "${size_mb}M" root.raw
# uninit_bg: a platform that gives the root more room need not write what no file uses
mkfs.ext4 -q -F -b 4096 -L guest -m 0 -O ^metadata_csum,uninit_bg -i 32768 -J size=8 -d root root.raw
du -sm root | cut -f 1
rm -rf root
