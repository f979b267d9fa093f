# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by run_fuzz and pack_corpora, which run the fuzz targets, in the Debian root.
. "$(dirname "${BASH_SOURCE[0]}")/../lab/common.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lab/cache.sh"

cd "$repo"
programs=build/fuzz-programs
mapfile -t all < <(basename -s .rs selftests/fuzz/fuzz_targets/*)

# choose_targets [TARGET…]: sets the array `targets` to these targets, or to all of them.
choose_targets() {
	targets=("$@")
	[ $# -gt 0 ] || targets=("${all[@]}")
	for target in "${targets[@]}"; do
		[ -e "selftests/fuzz/fuzz_targets/$target.rs" ] ||
			die "no fuzz target $target; there are: ${all[*]}"
	done
}

# enter_root COMMAND…: outside of the Debian root, builds all targets, runs the command in the root, and does not
# return.
enter_root() {
	[ "$repo" != /riw ] || return 0
	prepared
	built programs_key "${all[@]/#/$programs/}" -- selftests/lab/cargo-root selftests/fuzz/build
	exec selftests/lab/cargo-root "$@"
}

programs_key() {
	echo "fuzz-$toolchain-$(inputs rust/iwarp selftests/fuzz/{Cargo.toml,Cargo.lock,build,fuzz_targets,src})"
}
