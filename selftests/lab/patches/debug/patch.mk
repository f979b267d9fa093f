# SPDX-License-Identifier: GPL-2.0
#
# Included first by every make that builds the kernels debug and kasan (variable MAKEFILES).

# Record stack traces faster: see stacktrace.h.
CFLAGS_stacktrace.o := -include $(dir $(lastword $(MAKEFILE_LIST)))stacktrace.h
