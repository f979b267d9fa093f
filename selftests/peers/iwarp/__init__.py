# SPDX-License-Identifier: GPL-2.0
"""iWARP frames made and read by hand, for a peer that need not keep any rule.

Written from the RFCs alone, independent of the driver: MPA (RFC 5044, 6581), DDP (5041),
RDMAP (5040).
"""
