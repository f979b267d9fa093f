/* SPDX-License-Identifier: GPL-2.0 */
/* Headers that rust/trace binds. */
#include "../trace/events.h"
