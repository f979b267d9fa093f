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

# The newest release of Linux that riw has been tested with; debian/riw-dkms.dkms has it, too.
# shellcheck disable=SC2034 # used by tools/module
tested=7.3

# unfit MESSAGE: exits because riw cannot be built for this kernel with what is installed. DKMS takes this
# status of PRE_BUILD for a skip, so that one kernel does not keep the others, or apt, from their work.
unfit() {
	echo "riw: $*" >&2
	exit 77
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

# kernel_arch KDIR: prints the kernel's architecture, as kbuild names it.
kernel_arch() {
	local each
	for each in UML:um ARM64:arm64 X86_64:x86; do
		if [ "$(config "$1" "${each%:*}")" = y ]; then
			echo "${each#*:}"
			return
		fi
	done
	unfit "kernel $(release "$1") is for an architecture that riw has not been tried on: it runs on x86-64 and arm64"
}

# kernel_make KDIR: prints make's variables for the compiler and the architecture of the kernel, which need not
# be those of this machine: the other tools have the compiler's prefix, if it has one, or are LLVM's if the linker was.
kernel_make() {
	local cc
	cc=$(kernel_cc "$1")
	printf 'ARCH=%s CC=%s' "$(kernel_arch "$1")" "$cc"
	[[ $cc != *-gcc* ]] || printf ' CROSS_COMPILE=%s' "${cc%gcc*}"
	[ "$(config "$1" LD_IS_LLD)" != y ] || printf ' LLVM=1'
	echo
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
	unfit "kernel $(release "$1") was built by \"$want\", ${found[0]:-there is no ${RUSTC:-rustc}}: apt install rustc=$number* cargo=$number* libstd-rust-dev=$number* rust-src=$number*, or give RUSTC="
}

# makefile_version MAKEFILE: prints the version of Linux in a top Makefile.
makefile_version() {
	awk -F ' = ' '/^(VERSION|PATCHLEVEL|SUBLEVEL) =/ { v = v sep $2; sep = "." } END { print v }' "$1"
}

# kernel_common HEADERS: prints the folder of Debian's headers that all flavours share.
kernel_common() {
	sed -n 's/^include \(.*\)\/Makefile$/\1/p' "$1/Makefile"
}

# newest_kernel RELEASE: prints the command that installs Debian's newest kernel of the flavour of that kernel, with
# what the build takes. Debian 13 has it in backports.
newest_kernel() {
	local flavour=amd64 suite=
	[ "$(uname -m)" != aarch64 ] || flavour=arm64
	[[ $1 != *+deb*-* ]] || flavour=${1#*-}
	! grep -qsx VERSION_CODENAME=trixie /etc/os-release || suite='-t trixie-backports '
	echo "apt install ${suite}linux-image-$flavour linux-headers-$flavour linux-source"
}

# kernel_source HEADERS: prints the archive with the source of the kernel with these headers of Debian.
kernel_source() {
	local version name tar found series install
	version=$(makefile_version "$(kernel_common "$1")/Makefile")
	name=linux-source-${version%.*}
	tar=/usr/src/$name.tar.xz
	# Debian leaves out a third number of 0. The package linux-source depends on the version of one of the others.
	install="apt install $name=${version%.0}-*"
	series=$(dpkg-query --show --showformat='${Version}' linux-source 2>/dev/null || true)
	[[ $series != "${version%.*}"[.-]* ]] || install+=" linux-source=${version%.0}-*"
	# The archive does not keep old versions.
	install+=", or if apt has no such version: $(newest_kernel "$(release "$1")")"
	[ -e "$tar" ] || unfit "no $tar, for kernel $(release "$1"): $install"
	found=$(tar --occurrence=1 -xOf "$tar" "$name/Makefile" | makefile_version -)
	[ "$found" = "$version" ] ||
		unfit "$tar is Linux $found, the headers of kernel $(release "$1") are $version: $install"
	echo "$tar"
}

# metadata_source HEADERS: prints the archive of `kernel_source`, if the metadata of the kernel's crates can be made.
metadata_source() {
	local rustc
	rustc=$(kernel_rustc "$1")
	[ -e "$("$rustc" --print sysroot)/lib/rustlib/src/rust/library/core/src/lib.rs" ] ||
		unfit "no source of Rust's core: apt install rust-src"
	kernel_source "$1"
}

# release KDIR: prints the release of the kernel.
release() {
	sed -n 's/.*UTS_RELEASE "\(.*\)"/\1/p' "$1/include/generated/utsrelease.h"
}

# check_release RELEASE: fails unless riw supports this release of Linux.
check_release() {
	printf '7.2.6\n%s\n' "$1" | sort -CV ||
		unfit "needs Linux 7.2.6 or later, this is $1: $(newest_kernel "$1"), and boot it; or give KDIR="
}

# check_kernel KDIR: fails unless riw can be built for the kernel in KDIR with the installed compilers.
check_kernel() {
	local release name cc
	[ -e "$1/.config" ] || unfit "$1 is no kernel to build for: it has no .config"
	release=$(release "$1")
	check_release "$release"
	for name in RUST INFINIBAND INFINIBAND_USER_ACCESS INET; do
		[[ $(config "$1" $name) = [my] ]] ||
			unfit "kernel $release is configured without CONFIG_$name, which riw needs: $(newest_kernel "$release"), and boot it; or give KDIR="
	done
	for name in bindgen make; do
		command -v "$name" >/dev/null || unfit "no $name: apt install bindgen make"
	done
	kernel_rustc "$1" >/dev/null
	kernel_arch "$1" >/dev/null
	cc=$(kernel_cc "$1")
	command -v "$cc" >/dev/null || unfit "kernel $release was built by $cc: apt install ${cc#*-linux-gnu-}"
}
