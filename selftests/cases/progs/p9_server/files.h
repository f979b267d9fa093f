/* SPDX-License-Identifier: GPL-2.0 */
/* The operations of 9P2000.L on the files of a folder. */
#ifndef P9_FILES_H
#define P9_FILES_H

#include "message.h"

/* Sets the folder to export. Returns false and sets errno on failure. */
bool files_export(const char *folder);

/*
 * Does a request of this type, other than TVERSION. Writes the reply without its header. Returns 0, or
 * the errno of the reply.
 */
int files_do(uint8_t type, struct message *request, struct message *reply);

/* Forgets all files that the client has named. */
void files_forget(void);

#endif
