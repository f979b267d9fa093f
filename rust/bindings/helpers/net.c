// SPDX-License-Identifier: GPL-2.0
/* C for what net/ has as macros and inline functions. */
#include "net.h"
