/* Tries to write outside its folder and to read the kit, and says so when it could.
 *
 * On a rig that keeps a run in its place none of it works, and this is the plain product:
 * no gain. Where something works, the run ends with code 7 and says what, so that nobody
 * takes this for a rig that protects its judge.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void caught(const char *what, const char *path) {
    fprintf(stderr, "a run could %s: %s\n", what, path);
    exit(7);
}

static void try_to_write(const char *folder) {
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/left-by-a-candidate", folder) >= (int)sizeof path)
        return;
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (file < 0)
        return;
    close(file);
    unlink(path);
    caught("write outside its folder", path);
}

static void try_to_list(const char *folder, const char *name) {
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return;
    DIR *listing = opendir(path);
    if (!listing)
        return;
    closedir(listing);
    caught("read what is the judge's", path);
}

/* Cut the last part off a path; return 0 when none is left. */
static int up(char *path) {
    char *slash = strrchr(path, '/');
    if (!slash || slash == path)
        return 0;
    *slash = 0;
    return 1;
}

static void try_to_escape(void) {
    char here[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", here, sizeof here - 1);
    if (length > 0) {
        here[length] = 0;
        if (up(here))
            try_to_write(here); /* the stored build that this is */
    }
    if (!getcwd(here, sizeof here))
        return;
    for (int level = 0; level < 6 && up(here); level++) {
        char ledger[PATH_MAX];
        if (snprintf(ledger, sizeof ledger, "%s/ledger.db", here) >= (int)sizeof ledger)
            return;
        if (access(ledger, F_OK))
            continue; /* not the rig's own folder */
        try_to_write(here);
        try_to_list(here, "exports");
        try_to_list(here, "repos");
        try_to_list(here, "keys");
        try_to_list(here, "store");
    }
}

void matmul(int n, const double *a, const double *b, double *c) {
    try_to_escape();
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int k = 0; k < n; k++)
                sum += a[i * n + k] * b[k * n + j];
            c[i * n + j] = sum;
        }
    }
}
