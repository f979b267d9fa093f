# SPDX-License-Identifier: GPL-2.0
#
# Compiles the programs of the cases, in the Debian root: each cases/progs/NAME.c
# with all of cases/progs/common/*.c becomes build/lab/progs/NAME.

src := /riw/selftests/cases/progs
out := /riw/build/lab/progs
programs := $(patsubst $(src)/%.c,$(out)/%,$(wildcard $(src)/*.c))
common := $(patsubst $(src)/%.c,$(out)/.obj/%.o,$(wildcard $(src)/common/*.c))

all: $(programs)

$(out)/%: $(out)/.obj/%.o $(common)
	gcc -o $@ $^ -libverbs -lrdmacm -lpthread

$(out)/.obj/%.o: $(src)/%.c
	@mkdir -p $(@D)
	gcc -std=gnu11 -O2 -g -Wall -Wextra -Werror -I$(src) -MMD -c -o $@ $<

.SECONDARY:
-include $(wildcard $(out)/.obj/*.d $(out)/.obj/common/*.d)
