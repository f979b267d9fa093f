# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by the tools: functions that read and check the configuration of a kernel.

set -euo pipefail
shopt -s inherit_errexit
PATH=$PATH:/usr/sbin:/sbin # for depmod and modinfo: `su` omits these directories

die() {
	echo "riw: $*" >&2
	exit 1
}

# config KDIR NAME: prints the value of a configuration symbol, without quotes.
config() {
	sed -n "s/^CONFIG_$2=\"\\?\\([^\"]*\\)\"\\?\$/\\1/p" "$1/.config"
}

# kernel_cc KDIR: prints the command of the C compiler that built the kernel.
kernel_cc() {
	local text
	text=$(config "$1" CC_VERSION_TEXT)
	# The text of gcc begins with the command, the text of clang with the vendor.
	case $text in
	*'clang version'*) echo clang ;;
	*) echo "${text%% *}" ;;
	esac
}

# kernel_rustc KDIR: prints the command of the rustc that built the kernel: $RUSTC, or an installed one.
# Crates are only compatible with those of the very same build of rustc.
kernel_rustc() {
	local want number name version found=()
	want=$(config "$1" RUSTC_VERSION_TEXT)
	number=$(sed 's/^rustc \([0-9]*\.[0-9]*\).*/\1/' <<<"$want")
	for name in ${RUSTC:-rustc /usr/bin/rustc "rustc-$number"}; do
		version=$("$name" --version 2>/dev/null) || continue
		if [ "$version" = "$want" ]; then
			echo "$name"
			return
		fi
		found+=("$name is \"$version\"")
	done
	die "kernel $(release "$1") was built by \"$want\", ${found[0]:-there is no ${RUSTC:-rustc}}: apt install rustc=$number* cargo=$number* libstd-rust-dev=$number* rust-src=$number*, or give RUSTC="
}

# release KDIR: prints the release of the kernel.
release() {
	sed -n 's/.*UTS_RELEASE "\(.*\)"/\1/p' "$1/include/generated/utsrelease.h"
}

# check_release RELEASE: fails unless riw supports this release of Linux.
check_release() {
	printf '7.3\n%s\n' "$1" | sort -CV ||
		die "needs Linux 7.3 or later, this is $1: apt install -t trixie-backports linux-image-amd64 linux-headers-amd64 linux-source, and boot it; or give KDIR="
}

# check_kernel KDIR: fails unless riw can be built for the kernel in KDIR with
# the installed compilers.
check_kernel() {
	local release name cc
	[ -e "$1/.config" ] || die "$1 is no kernel to build for: it has no .config"
	release=$(release "$1")
	check_release "$release"
	for name in RUST INFINIBAND INFINIBAND_USER_ACCESS INET; do
		[[ $(config "$1" $name) = [my] ]] ||
			die "kernel $release is configured without CONFIG_$name: use Debian's from trixie-backports, or give KDIR="
	done

	for name in bindgen make; do
		command -v "$name" >/dev/null || die "no $name: apt install bindgen make"
	done
	kernel_rustc "$1" >/dev/null
	cc=$(kernel_cc "$1")
	command -v "$cc" >/dev/null || die "kernel $release was built by $cc: apt install ${cc#*-linux-gnu-}"
}
