#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# setup.sh - installs what building qbpf needs, and with --tests what its tests need, on
# Debian 12 and 13, Ubuntu 24.04 and Fedora. Asks nothing, says what it does, and is done at
# once when all is there. A missing build need is an error; a test tool that the distribution
# does not have is skipped with a line, and so are the tests that want it.
#
# Debian 12 has libbpf 1.1 and the headers of Linux 6.1, qbpf needs 1.3 and 6.6 (uprobe_multi):
# there libbpf, bpftool and linux-libc-dev come from bookworm-backports, pinned to those alone.

set -u
export DEBIAN_FRONTEND=noninteractive LC_ALL=C

LIBBPF_MIN=1.3
BACKPORTS_LIST=/etc/apt/sources.list.d/qbpf-backports.sources
BACKPORTS_PIN=/etc/apt/preferences.d/qbpf-backports

say()
{
	echo "setup: $*" >&2
}

die()
{
	say "$*"
	exit 1
}

with_tests=0
for a in "$@"; do
	case $a in
	--tests) with_tests=1 ;;
	-h | --help)
		echo "usage: scripts/setup.sh [--tests]   install what building (and testing) qbpf needs"
		exit 0
		;;
	*)
		say "unknown argument: $a (see --help)"
		exit 2
		;;
	esac
done

# --- what each family of distributions calls things ---------------------------------------------

DEB_BUILD="git gcc g++ make pkg-config clang llvm linux-libc-dev libbpf-dev bpftool libelf-dev
	libdw-dev liblzma-dev zlib1g-dev libcapstone-dev libiberty-dev libncurses-dev libjansson-dev
	libzstd-dev libdeflate-dev libprotobuf-c-dev protobuf-c-compiler libcmocka-dev python3"
DEB_TESTS="bpftrace systemtap-sdt-dev linux-perf gdb tmux lld binutils elfutils qemu-system-x86
	busybox-static cpio postgresql quantlib-examples cppcheck clang-format
	clang-tidy shellcheck protobuf-compiler chromium npm"
RPM_BUILD="git gcc gcc-c++ make pkgconf-pkg-config clang llvm libbpf-devel bpftool
	elfutils-libelf-devel elfutils-devel xz-devel zlib-devel capstone-devel binutils-devel
	ncurses-devel jansson-devel libzstd-devel libdeflate-devel protobuf-c-devel
	protobuf-c-compiler libcmocka-devel python3"
RPM_TESTS="bpftrace systemtap-sdt-devel perf gdb tmux lld binutils elfutils compiler-rt
	qemu-system-x86-core busybox cpio postgresql-server postgresql-contrib QuantLib cppcheck
	clang-tools-extra ShellCheck protobuf-compiler chromium npm"

# ID, VERSION_ID and ID_LIKE, without letting that file set anything else here.
os()
{
	sed -n "s/^$1=//p" /etc/os-release 2>/dev/null | tr -d '"'
}

ID=$(os ID)
LIKE=$(os ID_LIKE)
CODENAME=$(os VERSION_CODENAME)
case " $ID $LIKE " in
*" debian "* | *" ubuntu "*) family=deb ;;
*" fedora "* | *" rhel "*) family=rpm ;;
*) family=none ;;
esac

# --- what is missing ----------------------------------------------------------------------------

# Prints those of "$@" that are not installed.
missing()
{
	local have p
	if [ $family = deb ]; then
		# shellcheck disable=SC2016
		have=" $(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null |
			sed -n 's/^installed //p' | tr '\n' ' ')"
		for p in "$@"; do
			[[ $have == *" $p "* ]] || echo "$p"
		done
	else
		for p in "$@"; do
			rpm -q --quiet --whatprovides "$p" 2>/dev/null || echo "$p"
		done
	fi
}

# A command of that name anywhere that root looks, whatever PATH says.
has_command()
{
	PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin command -v "$1" >/dev/null
}

# On Ubuntu /usr/sbin/bpftool and perf are wrappers that work only with the running kernel's own tools.
command_works()
{
	has_command "$1" && PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin "$1" version >/dev/null 2>&1
}

libbpf_too_old()
{
	! pkg-config --atleast-version=$LIBBPF_MIN libbpf 2>/dev/null
}

# The kernel's headers name what user space asks for by that name.
headers_too_old()
{
	! grep -q BPF_TRACE_UPROBE_MULTI /usr/include/linux/bpf.h 2>/dev/null
}

# The sanitizer and fuzzer runtime of the clang that is installed, a package of its own.
clang_runtime()
{
	local v
	v=$(clang -dumpversion 2>/dev/null) && echo "libclang-rt-${v%%.*}-dev"
}

# Adds a package that is installed, but not in the version that is wanted.
need_newer()
{
	[[ " ${need[*]} " != *" $2 "* ]] && "$1" && need+=("$2")
}

# Sets need (array) to what is missing of the build needs ($1 = build) or the test tools.
find_missing()
{
	local list p
	need=()
	if [ $family = deb ]; then
		[ "$1" = build ] && list=$DEB_BUILD || list="$DEB_TESTS $(clang_runtime)"
	else
		[ "$1" = build ] && list=$RPM_BUILD || list=$RPM_TESTS
	fi
	# shellcheck disable=SC2086
	for p in $(missing $list); do
		case $p in
		bpftool) command_works bpftool && continue ;;
		linux-perf | perf) command_works perf && continue ;;
		npm) has_command npm && continue ;; # comes with nodejs elsewhere
		esac
		need+=("$p")
	done
	if [ "$1" = build ] && [ $family = deb ]; then
		need_newer libbpf_too_old libbpf-dev
		need_newer headers_too_old linux-libc-dev
	fi
	return 0
}

# --- installing ---------------------------------------------------------------------------------

updated=0
apt_update()
{
	[ $updated = 1 ] && return
	say "apt-get update"
	# Another source that is broken must not stop us: what matters is what can be installed.
	apt-get -q update >&2 || say "apt-get update reported errors; going on with what there is"
	updated=1
}

# Debian 12: adds the backports suite unless it is there, and pins it to what we take from it.
add_backports()
{
	local uri pin

	pin="# Written by qbpf's scripts/setup.sh: libbpf >= $LIBBPF_MIN, headers >= 6.6.
Package: libbpf-dev libbpf1 bpftool linux-libc-dev
Pin: release n=bookworm-backports
Pin-Priority: 500"
	if [ "$(cat $BACKPORTS_PIN 2>/dev/null)" != "$pin" ]; then
		say "writing $BACKPORTS_PIN (these packages from bookworm-backports, nothing else)"
		echo "$pin" >$BACKPORTS_PIN
	fi
	if apt-cache policy 2>/dev/null | grep -q 'n=bookworm-backports'; then
		return
	fi
	[ -e $BACKPORTS_LIST ] && return
	# The mirror that this machine uses already.
	uri=$(apt-cache policy 2>/dev/null |
		sed -n 's|^ *[0-9]* \(https\{0,1\}://[^ ]*\) bookworm/main .*|\1|p' | head -n 1)
	say "writing $BACKPORTS_LIST"
	cat >$BACKPORTS_LIST <<-SRC
		# Written by qbpf's scripts/setup.sh, which pins what is taken from here.
		Types: deb
		URIs: ${uri:-http://deb.debian.org/debian}
		Suites: bookworm-backports
		Components: main
		Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
	SRC
	updated=0
}

# Whether apt could install this name.
apt_has()
{
	apt-cache policy "$1" 2>/dev/null | grep -q '^ *Candidate: [0-9]'
}

# Ubuntu: the wrappers, and a kernel's tools linked to where make and the shell look first, unless
# those of the running kernel can be had. $1: bpftool or perf.
ubuntu_kernel_tool()
{
	local f names running dir=/usr/local/sbin
	running="linux-tools-$(uname -r)"
	names=(linux-tools-common linux-tools-generic)

	apt_has "$running" && names+=("$running")
	[ -z "$(missing "${names[@]}")" ] || pkg_install "${names[@]}" || return 1
	command_works "$1" && return 0
	f=$(find /usr/lib/linux-tools* -name "$1" 2>/dev/null | sort -V | tail -n 1)
	[ -n "$f" ] || return 1
	[ "$1" = perf ] && dir=/usr/local/bin
	say "linking $dir/$1 to $f"
	ln -sf "$f" "$dir/$1"
}

pkg_install()
{
	say "installing $*"
	if [ $family = deb ]; then
		apt-get -qy -o Dpkg::Options::=--force-confold install --no-install-recommends "$@" >&2
	else
		dnf -q -y install --setopt=install_weak_deps=False "$@" >&2
	fi
}

install_build()
{
	local p rest=() tools=0

	if [ $family = deb ]; then
		[ "$ID:$CODENAME" = debian:bookworm ] && [[ " $* " =~ \ (libbpf-dev|bpftool|linux-libc-dev)\  ]] &&
			add_backports
		apt_update
		for p in "$@"; do
			if [ "$p" = bpftool ] && ! apt_has bpftool; then
				tools=1
			else
				rest+=("$p")
			fi
		done
	else
		rest=("$@")
	fi
	if [ ${#rest[@]} -gt 0 ]; then
		pkg_install "${rest[@]}" || die "could not install: ${rest[*]}"
	fi
	if [ $tools = 1 ]; then
		ubuntu_kernel_tool bpftool || die "could not install bpftool"
	fi
}

# Whether any package index has ever been fetched.
apt_knows()
{
	find /var/lib/apt/lists -name '*_Packages*' 2>/dev/null | grep -q .
}

install_tests()
{
	local p have=()

	if [ $family = deb ]; then
		# What this distribution lacks must not cost an update at each make check.
		apt_knows || apt_update
		for p in "$@"; do
			if [ "$p" = linux-perf ] && ! apt_has linux-perf; then
				ubuntu_kernel_tool perf || say "skipped: perf (not in this distribution)"
			elif apt_has "$p"; then
				have+=("$p")
			else
				say "skipped: $p (not in this distribution); its tests will be skipped"
			fi
		done
	else
		have=("$@")
	fi
	[ ${#have[@]} -gt 0 ] || return 0
	[ $family = rpm ] || apt_update
	did=1
	pkg_install "${have[@]}" && return 0
	# One that cannot be had must not cost the others.
	for p in "${have[@]}"; do
		pkg_install "$p" || say "skipped: $p (could not be installed); its tests will be skipped"
	done
}

# --- main ---------------------------------------------------------------------------------------

root_or_die()
{
	[ "$(id -u)" = 0 ] || die "must be root to install: $*"
}

if [ $family = none ]; then
	die "unknown distribution '${ID:-?}': install by hand what this script lists under DEB_BUILD"
fi

did=0
find_missing build
if [ ${#need[@]} -gt 0 ]; then
	root_or_die "${need[*]}"
	install_build "${need[@]}"
	did=1
	find_missing build
	[ ${#need[@]} -eq 0 ] || die "still missing after installation: ${need[*]}"
fi
if [ $family = deb ] && libbpf_too_old; then
	die "libbpf >= $LIBBPF_MIN is needed, found $(pkg-config --modversion libbpf 2>&1 | head -n 1)"
fi
if headers_too_old; then
	die "/usr/include/linux/bpf.h is older than Linux 6.6: it does not know uprobe_multi"
fi
if [ $with_tests = 1 ]; then
	find_missing tests
	if [ ${#need[@]} -gt 0 ] && [ "$(id -u)" != 0 ]; then
		say "test tools missing, and not root to install them: ${need[*]}"
	elif [ ${#need[@]} -gt 0 ]; then
		install_tests "${need[@]}"
	fi
fi
[ $did = 1 ] && say "done"
exit 0
