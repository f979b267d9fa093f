# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Sourced by scripts that write TAP, which cases/lib/ktap.py reads. The functions have the names and
# meanings of tools/testing/selftests/kselftest/ktap_helpers.sh in the kernel.

ktap_planned=0
ktap_made=0
ktap_failed=0

# ktap_set_plan NUMBER: announces this many points.
ktap_set_plan() {
	ktap_planned=$1
	echo "1..$1"
}

# ktap_print_msg TEXT: writes lines that belong to the next point.
ktap_print_msg() {
	local text=$*
	echo "# ${text//$'\n'/$'\n'# }"
}

# ktap_test_pass TITLE, ktap_test_fail TITLE: write a point.
ktap_test_pass() {
	echo "ok $((++ktap_made)) - $*"
}

ktap_test_fail() {
	ktap_failed=1
	echo "not ok $((++ktap_made)) - $*"
}

# ktap_finished: ends the script, with status 1 if a point has failed or is missing.
ktap_finished() {
	[ "$ktap_made" -eq "$ktap_planned" ] || ktap_failed=1
	exit "$ktap_failed"
}
