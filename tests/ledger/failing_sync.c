/* A disk that fails to confirm: from the moment the file named by FAIL_SYNC_WHEN exists, every fsync and
   fdatasync fails with EIO. Loaded into a process of its own with LD_PRELOAD. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static int failing(void) {
    const char *flag = getenv("FAIL_SYNC_WHEN");
    return flag != NULL && access(flag, F_OK) == 0;
}

static int confirm(int descriptor) {
    (void)descriptor;
    if (failing()) {
        errno = EIO;
        return -1;
    }
    return 0;
}

int fsync(int descriptor) { return confirm(descriptor); }
int fdatasync(int descriptor) { return confirm(descriptor); }
