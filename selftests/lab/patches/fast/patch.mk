# SPDX-License-Identifier: GPL-2.0
#
# Included first by every make that builds the fast kernel (variable MAKEFILES).

# User-Mode Linux has no CRC32_ARCH. Define it for crc32-main.c only, which then includes the crc32.h
# in this folder.
CFLAGS_crc32-main.o := -DCONFIG_CRC32_ARCH=1 -mcrc32 -I$(dir $(lastword $(MAKEFILE_LIST)))
