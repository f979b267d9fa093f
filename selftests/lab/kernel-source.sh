# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced in a Debian root by the scripts that build a kernel from its linux-source: one version of it is installed.

# unpack_source FOLDER: unpacks the source there, without files that a kernel for x86-64 or User-Mode Linux does not
# need: half of it. What `make series` changes stays.
unpack_source() {
	local archive name
	archive=$(echo /usr/src/linux-source-*.tar.xz)
	name=$(basename "$archive" .tar.xz)
	echo "unpacking $name"
	mkdir -p "$1"
	tar -C "$1" --strip-components=1 --anchored --wildcards -xf "$archive" \
		--exclude="$name/drivers/gpu/drm/amd/include" --exclude="$name/arch/[!ux]*.[chS]" \
		--exclude="$name/arch/*.dts*" --exclude="$name/Documentation/[!i]*/*" --exclude="$name/tools/testing"
}

# use_objtool SOURCE KDIR: builds of that source in KDIR take Debian's objtool, of the same version: to build it takes
# a library that the root lacks.
use_objtool() {
	sed -i '/^prepare: tools\/objtool$/d' "$1/Makefile"
	install -D /usr/lib/linux-kbuild-*/tools/objtool/objtool.real-x86 "$2/tools/objtool/objtool"
}

# configure KDIR CONFIG… -- MAKE…: configures a kernel in KDIR with the symbols of these files; all others are off. MAKE
# is the command that builds it.
configure() {
	local kdir=$1 configs=() missing
	shift
	while [ "$1" != -- ]; do
		configs+=("$1")
		shift
	done
	shift
	sort -u <(grep -h '^CONFIG_' "${configs[@]}") >"$kdir/wanted"
	"$@" KCONFIG_ALLCONFIG="$kdir/wanted" allnoconfig
	# kconfig silently drops symbols whose dependencies are not met.
	missing=$(comm -23 <(grep -v '=n$' "$kdir/wanted") <(sort -u "$kdir/.config"))
	[ -z "$missing" ] || {
		printf '%s: kconfig dropped these symbols, their dependencies are not met:\n%s\n' "${configs[-1]}" "$missing" >&2
		return 1
	}
}
