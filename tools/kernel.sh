# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by the tools that build for a kernel: what its configuration says.

set -euo pipefail
shopt -s inherit_errexit
PATH=$PATH:/usr/sbin:/sbin # which `su` leaves out: depmod, modinfo

die() {
	echo "riw: $*" >&2
	exit 1
}

# config KDIR NAME: the value of a configuration symbol, without quotes.
config() {
	sed -n "s/^CONFIG_$2=\"\\?\\([^\"]*\\)\"\\?\$/\\1/p" "$1/.config"
}

# The compiler that the kernel in KDIR was built with, as a command.
kernel_cc() {
	local text
	text=$(config "$1" CC_VERSION_TEXT)
	# gcc's begins with the command, clang's with whose it is.
	case $text in
	*'clang version'*) echo clang ;;
	*) echo "${text%% *}" ;;
	esac
}

# release KDIR: the version of that kernel.
release() {
	sed -n 's/.*UTS_RELEASE "\(.*\)"/\1/p' "$1/include/generated/utsrelease.h"
}

# check_release RELEASE: whether riw can be built for that version of Linux.
check_release() {
	printf '7.3\n%s\n' "$1" | sort -CV ||
		die "needs Linux 7.3 or later, this is $1: apt install -t trixie-backports linux-image-amd64 linux-headers-amd64 linux-source, and boot it; or give KDIR="
}

# check_kernel KDIR: whether riw can be built for the kernel in KDIR, with the
# compilers at hand.
check_kernel() {
	local release name version want cc
	[ -e "$1/.config" ] || die "$1 is no kernel to build for: it has no .config"
	release=$(release "$1")
	check_release "$release"
	for name in RUST INFINIBAND INFINIBAND_USER_ACCESS INET; do
		[[ $(config "$1" $name) = [my] ]] ||
			die "kernel $release is configured without CONFIG_$name: use Debian's from trixie-backports, or give KDIR="
	done

	for name in bindgen make rustc; do
		command -v "$name" >/dev/null || die "no $name: apt install bindgen make rustc rust-src"
	done
	# Crates of different compilers do not go together, not even of two builds of one.
	version=$(rustc --version)
	want=$(config "$1" RUSTC_VERSION_TEXT)
	[ "$version" = "$want" ] ||
		die "kernel $release was built by \"$want\", here is \"$version\": put that rustc first in PATH"
	cc=$(kernel_cc "$1")
	command -v "$cc" >/dev/null || die "kernel $release was built by $cc: apt install ${cc#*-linux-gnu-}"
}
