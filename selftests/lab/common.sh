# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by the lab's scripts: paths, errors, progress.
# shellcheck disable=SC2034 # used by those that source this

set -euo pipefail
shopt -s inherit_errexit
PATH=$PATH:/usr/sbin:/sbin # which `su` leaves out: chroot, modprobe

repo=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
lab=${RIW_LAB:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/riw}

die() {
	echo "riw lab: $*" >&2
	exit 1
}

# The target is a row of the table. The others than `stock` have build folders of their own. In the Debian root, and
# in the VM, that folder is /riw/build.
target=${RIW_TARGET:-stock}
row=$(awk -v name="$target" '$1 == name' "$repo/selftests/reach/targets")
[ -n "$row" ] ||
	die "no target $target: selftests/reach/targets has $(awk '/^[^#]/ { print $1 }' "$repo/selftests/reach/targets" | xargs)"
[ "$target" = stock ] || [ "${RIW_KERNEL:-stock}" = stock ] ||
	die "the kernel $RIW_KERNEL is for the target stock only: leave out RIW_KERNEL=$RIW_KERNEL or RIW_TARGET=$target"
read -r _ suite architecture _ <<<"$row"
builddir=build
[ "$target" = stock ] || builddir=build/reach/$target

# If root creates the folder, the owner of the repository must still be able to build in it.
if ! [ -d "$repo/build" ]; then
	mkdir -p "$repo/build"
	chown --reference="$repo" "$repo/build"
fi
mkdir -p "$repo/$builddir"

# step TITLE COMMAND…: runs COMMAND with its output in a log, and shows the time it takes. On
# failure, shows the last line of the log if one of our scripts printed it: that line says it all.
# Otherwise shows the end of the log.
step() {
	local title=$1 start=$SECONDS status=0 ticker
	local log=$repo/$builddir/log/${title// /-}.log
	shift
	mkdir -p "$repo/$builddir/log"
	progress "$title" 9>&- & # must not hold the lock of cache.sh
	ticker=$!
	"$@" >"$log" 2>&1 </dev/null || status=$?
	kill "$ticker" 2>/dev/null || true
	wait "$ticker" 2>/dev/null || true
	[ -t 2 ] && printf '\r\033[K' >&2
	if [ "$status" -ne 0 ]; then
		if tail -n 1 "$log" | grep '^riw' >&2; then
			exit 1
		fi
		tail -n 30 "$log" | sed 's/^/    /' >&2
		die "$title failed after $((SECONDS - start)) s; log: $log"
	fi
	echo "  $title: $((SECONDS - start)) s" >&2
}

progress() {
	local begin=$SECONDS pause=15 format='  %s … %d s\n'
	[ -t 2 ] && pause=1 format='\r  %s … %d s'
	# Read from an empty pipe instead of sleeping: a sleep would outlive this function and keep
	# the output open, and a reader of the output would wait for it. Also stop if the script is
	# gone.
	while ! read -rt "$pause" _; do
		kill -0 $$ 2>/dev/null || return
		# shellcheck disable=SC2059 # the format is one of the two above
		printf "$format" "$1" $((SECONDS - begin)) >&2
	done <> <(:)
}

# host_cargo: succeeds if the host has cargo and a Rust as recent as rust/iwarp needs.
host_cargo() {
	local want have
	want=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$repo/rust/iwarp/Cargo.toml")
	command -v cargo >/dev/null && have=$(rustc --version 2>/dev/null | cut -d ' ' -f 2) &&
		printf '%s\n' "$want" "$have" | sort -CV
}

# hash FILE…: prints a hash of the files, 16 hex digits.
hash() {
	(cd "$repo" && sha256sum "$@" | sha256sum | cut -c 1-16)
}

# A folder of the cache is named after a hash of its inputs. So a stale folder is not found, and two
# checkouts with different inputs do not disturb each other.
here=selftests/lab
# The stock kernel has a root of its own. The other targets of a suite and an architecture share one, which has all
# their kernels. The programs of a root of another architecture run in emulation here, which is slow. So its modules
# are cross-built in the builder: the root of the same suite with this machine's architecture.

# The name of the target's kernel, if the lab builds it itself. It does so in the root of the stock kernel, and the VM
# has that root.
own=$(awk 'sub("^own/", "", $4) { print $4 }' <<<"$row")
stock_root=$own
[ "$target" != stock ] || stock_root=yes

# rows_of ARCHITECTURE: prints the rows of the targets to which that root of the suite belongs.
rows_of() {
	if [ -n "$stock_root" ]; then
		awk '$1 == "stock"' "$repo/selftests/reach/targets"
	else
		awk -v suite="$suite" -v architecture="$1" '/^[^#]/ && $1 != "stock" && $4 !~ "^own/" && $2 == suite &&
			(architecture == "amd64" || $3 == architecture)' "$repo/selftests/reach/targets"
	fi
}

# lists_of ARCHITECTURE: prints the files that list the packages of that root.
lists_of() {
	echo $here/packages
	[ "$1" != amd64 ] || echo $here/packages-build
	[ -z "$stock_root" ] || echo $here/packages-stock
}

# root_of ARCHITECTURE: prints the folder of that root.
root_of() {
	local lists name=$suite-$1
	[ -z "$stock_root" ] || name=stock
	mapfile -t lists < <(lists_of "$1")
	echo "$lab/root-$name-$({ rows_of "$1" && hash "${lists[@]}" $here/root; } | sha256sum | cut -c 1-16)"
}

root=$(root_of "$architecture")
builder=$(root_of amd64)
# The release of the target's kernel, in its root.
release=$({ ls "$root/lib/modules" 2>/dev/null || true; } | awk -v row="$row" \
	'BEGIN { split(row, own); sub("/.*", "", own[4]) } $0 == own[4] || substr($0, index($0, "-") + 1) == own[4]')
# The name of a folder that is built in a root has a hash of the root's toolchain. Its other packages do not matter.
toolchain=$(cat "$root/toolchain" 2>/dev/null || true)
kernel=$lab/kernel-$target-$(cat "$builder/toolchain" 2>/dev/null || true)-$(hash $here/kernel tools/{kernel.sh,rust-metadata})
boot=$lab/boot-$target-$toolchain-$(hash $here/{boot,tsc.c,guest/initrd-init} tools/kernel.sh)
if [ -n "$own" ]; then
	# Nothing else: a change builds the whole kernel again.
	kernel=$lab/kernel-$target-$toolchain-$(hash $here/{own-kernel,kernel-source.sh} selftests/reach/"$own".config)
	boot+=-${kernel##*-}
fi
