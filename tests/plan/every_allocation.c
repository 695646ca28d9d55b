/* Preloaded, it counts the bytes of large allocations, of whatever library and thread. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stddef.h>

static const size_t LARGE = 16384; /* smaller ones are mostly Python's objects */
static _Atomic long now, most;

static void *came(void *p)
{
    long size = p ? (long)malloc_usable_size(p) : 0;
    if (size >= (long)LARGE) {
        long held = atomic_fetch_add(&now, size) + size, seen = atomic_load(&most);
        while (held > seen && !atomic_compare_exchange_weak(&most, &seen, held))
            ;
    }
    return p;
}

static void went(void *p)
{
    long size = p ? (long)malloc_usable_size(p) : 0;
    if (size >= (long)LARGE)
        atomic_fetch_sub(&now, size);
}

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t), __libc_free(void *);

void *malloc(size_t n) { return came(__libc_malloc(n)); }
void *calloc(size_t n, size_t each) { return came(__libc_calloc(n, each)); }
void *memalign(size_t to, size_t n) { return came(__libc_memalign(to, n)); }
void *aligned_alloc(size_t to, size_t n) { return memalign(to, n); }
void free(void *p) { went(p); __libc_free(p); }

void *realloc(void *p, size_t n)
{
    went(p);
    void *moved = __libc_realloc(p, n);
    came(moved ? moved : n ? p : NULL);
    return moved;
}

int posix_memalign(void **p, size_t to, size_t n)
{
    *p = memalign(to, n);
    return *p || !n ? 0 : 12; /* ENOMEM */
}

long allocated(void) { return now; }
long peak(void) { return most; }
void begin(void) { most = now; }
