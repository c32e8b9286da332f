/*
  Functions for a server that is tested: each leaks by design, or does something else that whoever watches its memory
  has to stand. Built by heap.py, created as SONAME 'planted.so'.
*/
#include <mysql.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

typedef char my_bool;
#define UNUSED __attribute__((unused))

static void *volatile kept;

/* So many bytes that nobody frees. */
__attribute__((noinline)) void planted_leak(size_t bytes) { kept = malloc(bytes); }
/* The same by another way. */
__attribute__((noinline)) void planted_calloc(size_t bytes) { kept = realloc(calloc(1, bytes / 2), bytes); }

static my_bool takes_numbers(UDF_INIT *init, UDF_ARGS *args, char *message) {
    for (unsigned i = 0; i < args->arg_count; i++) args->arg_type[i] = INT_RESULT;
    init->const_item = 0;
    init->maybe_null = 0;
    (void)message;
    return 0;
}

static long long number(UDF_ARGS *args, unsigned at) { return args->args[at] ? *(long long *)args->args[at] : 0; }

/* leak(bytes, times): returns how many were leaked. */
my_bool leak_init(UDF_INIT *init, UDF_ARGS *args, char *message) {
    if (args->arg_count != 2) return 1;
    return takes_numbers(init, args, message);
}
long long leak(UDF_INIT *init UNUSED, UDF_ARGS *args, char *is_null UNUSED, char *error UNUSED) {
    const long long times = number(args, 1);
    for (long long i = 0; i < times; i++) planted_leak((size_t)number(args, 0));
    return times;
}

/* leak_otherwise(bytes): one, by calloc and realloc. */
my_bool leak_otherwise_init(UDF_INIT *init, UDF_ARGS *args, char *message) {
    if (args->arg_count != 1) return 1;
    return takes_numbers(init, args, message);
}
long long leak_otherwise(UDF_INIT *init UNUSED, UDF_ARGS *args, char *is_null UNUSED, char *error UNUSED) {
    planted_calloc((size_t)number(args, 0));
    return 1;
}

/* churn(times): allocates and frees by all functions that there are; leaves nothing. */
my_bool churn_init(UDF_INIT *init, UDF_ARGS *args, char *message) {
    if (args->arg_count != 1) return 1;
    return takes_numbers(init, args, message);
}
long long churn(UDF_INIT *init UNUSED, UDF_ARGS *args, char *is_null UNUSED, char *error UNUSED) {
    const long long times = number(args, 0);
    for (long long i = 0; i < times; i++) {
        void *aligned = NULL, *one = malloc((size_t)(i % 5000)), *other = calloc(3, (size_t)(i % 700));
        one = realloc(one, (size_t)(i % 9000) + 1);
        one = realloc(one, (size_t)(i % 9000) + 2);
        if (posix_memalign(&aligned, 64, 200) == 0) free(aligned);
        free(aligned_alloc(64, 128));
        free(strdup("text"));
        free(one);
        free(other);
    }
    return times;
}

/* fork_while(times): children that allocate and end well; returns how many did. */
my_bool fork_while_init(UDF_INIT *init, UDF_ARGS *args, char *message) {
    if (args->arg_count != 1) return 1;
    return takes_numbers(init, args, message);
}
long long fork_while(UDF_INIT *init UNUSED, UDF_ARGS *args, char *is_null UNUSED, char *error UNUSED) {
    long long well = 0;
    for (long long i = 0; i < number(args, 0); i++) {
        const pid_t child = fork();
        if (child == 0) {
            /* A child that waits for ever at a lock is ended, and does not count. */
            signal(SIGALRM, SIG_DFL);
            alarm(10);
            for (int n = 0; n < 1000; n++) free(malloc((size_t)n));
            _exit(0);
        }
        int status = 1;
        if (child > 0 && waitpid(child, &status, 0) == child && status == 0) well++;
    }
    return well;
}

/* interrupted(times): signals whose handler allocates and frees come while the thread does; returns how many came. What
   malloc itself does not stand in a handler is kept away: the thread is within the functions around it only. */
static volatile sig_atomic_t ticks;
static void tick(int number UNUSED) { ticks++; }
my_bool interrupted_init(UDF_INIT *init, UDF_ARGS *args, char *message) {
    if (args->arg_count != 1) return 1;
    return takes_numbers(init, args, message);
}
long long interrupted(UDF_INIT *init UNUSED, UDF_ARGS *args, char *is_null UNUSED, char *error UNUSED) {
    struct sigaction action, before;
    const struct itimerval fast = {{0, 200}, {0, 200}}, none = {{0, 0}, {0, 0}};
    sigset_t prof, mask;
    memset(&action, 0, sizeof action);
    action.sa_handler = tick;
    action.sa_flags = SA_RESTART;
    ticks = 0;
    sigemptyset(&prof);
    sigaddset(&prof, SIGPROF);
    sigaction(SIGPROF, &action, &before);
    pthread_sigmask(SIG_UNBLOCK, &prof, &mask);
    setitimer(ITIMER_PROF, &fast, NULL);
    for (long long i = 0; i < number(args, 0); i++) free(malloc((size_t)(i % 3000)));
    setitimer(ITIMER_PROF, &none, NULL);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    sigaction(SIGPROF, &before, NULL);
    return ticks;
}
