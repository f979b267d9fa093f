# SPDX-License-Identifier: GPL-2.0
#
# Every make that builds the fast kernel reads this first (MAKEFILES).

# kbuild has no CRC32_ARCH for User-Mode Linux: crc32-main.c alone is built as if it had, with
# the crc32.h beside this file.
CFLAGS_crc32-main.o := -DCONFIG_CRC32_ARCH=1 -mcrc32 -I$(dir $(lastword $(MAKEFILE_LIST)))
