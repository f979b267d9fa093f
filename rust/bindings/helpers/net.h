/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RIW_HELPERS_NET_H
#define RIW_HELPERS_NET_H
#include <net/sock.h>
#endif
