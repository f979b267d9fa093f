# SPDX-License-Identifier: GPL-2.0
"""Hand-built iWARP frames, for a peer that may break any rule.

Written from the RFCs only, independent of the driver: MPA (RFC 5044, 6581), DDP (5041), RDMAP
(5040).
"""
