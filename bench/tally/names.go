// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Name returns a system call's name, for those that a server and its sandboxes are known to make; of others
// the number.
func Name(n int) string {
	if name, ok := names[n]; ok {
		return name
	}
	if name, ok := legacyNames[n]; ok {
		return name
	}
	if n == births {
		return "(new process)"
	}
	return fmt.Sprintf("call %d", n)
}

// names are those that each architecture has.
var names = map[int]string{
	unix.SYS_READ: "read", unix.SYS_WRITE: "write", unix.SYS_CLOSE: "close", unix.SYS_FSTAT: "fstat",
	unix.SYS_LSEEK: "lseek", unix.SYS_MMAP: "mmap", unix.SYS_MPROTECT: "mprotect", unix.SYS_MUNMAP: "munmap",
	unix.SYS_BRK: "brk", unix.SYS_RT_SIGACTION: "rt_sigaction", unix.SYS_RT_SIGPROCMASK: "rt_sigprocmask",
	unix.SYS_RT_SIGRETURN: "rt_sigreturn", unix.SYS_RT_SIGTIMEDWAIT: "rt_sigtimedwait", unix.SYS_IOCTL: "ioctl",
	unix.SYS_PREAD64: "pread64", unix.SYS_PWRITE64: "pwrite64", unix.SYS_READV: "readv",
	unix.SYS_WRITEV: "writev", unix.SYS_SCHED_YIELD: "sched_yield", unix.SYS_MADVISE: "madvise",
	unix.SYS_DUP: "dup", unix.SYS_DUP3: "dup3", unix.SYS_NANOSLEEP: "nanosleep",
	unix.SYS_CLOCK_NANOSLEEP: "clock_nanosleep", unix.SYS_GETPID: "getpid", unix.SYS_GETTID: "gettid",
	unix.SYS_GETPPID: "getppid", unix.SYS_GETUID: "getuid", unix.SYS_GETEUID: "geteuid",
	unix.SYS_GETGID: "getgid", unix.SYS_GETEGID: "getegid", unix.SYS_SENDFILE: "sendfile",
	unix.SYS_SOCKET: "socket", unix.SYS_SOCKETPAIR: "socketpair", unix.SYS_CONNECT: "connect",
	unix.SYS_ACCEPT4: "accept4", unix.SYS_BIND: "bind", unix.SYS_LISTEN: "listen", unix.SYS_SENDTO: "sendto",
	unix.SYS_RECVFROM: "recvfrom", unix.SYS_SENDMSG: "sendmsg", unix.SYS_RECVMSG: "recvmsg",
	unix.SYS_SENDMMSG: "sendmmsg", unix.SYS_RECVMMSG: "recvmmsg", unix.SYS_SHUTDOWN: "shutdown",
	unix.SYS_GETSOCKNAME: "getsockname", unix.SYS_GETPEERNAME: "getpeername", unix.SYS_SETSOCKOPT: "setsockopt",
	unix.SYS_GETSOCKOPT: "getsockopt", unix.SYS_CLONE: "clone", unix.SYS_CLONE3: "clone3",
	unix.SYS_EXECVE: "execve", unix.SYS_EXECVEAT: "execveat", unix.SYS_EXIT: "exit",
	unix.SYS_EXIT_GROUP: "exit_group", unix.SYS_WAIT4: "wait4", unix.SYS_WAITID: "waitid", unix.SYS_KILL: "kill",
	unix.SYS_TGKILL: "tgkill", unix.SYS_TKILL: "tkill", unix.SYS_PIDFD_OPEN: "pidfd_open",
	unix.SYS_PIDFD_SEND_SIGNAL: "pidfd_send_signal", unix.SYS_PIDFD_GETFD: "pidfd_getfd",
	unix.SYS_FCNTL: "fcntl", unix.SYS_FLOCK: "flock", unix.SYS_FSYNC: "fsync", unix.SYS_FDATASYNC: "fdatasync",
	unix.SYS_SYNC_FILE_RANGE: "sync_file_range", unix.SYS_SYNCFS: "syncfs", unix.SYS_SYNC: "sync",
	unix.SYS_MSYNC: "msync", unix.SYS_TRUNCATE: "truncate", unix.SYS_FTRUNCATE: "ftruncate",
	unix.SYS_FALLOCATE: "fallocate", unix.SYS_GETDENTS64: "getdents64", unix.SYS_GETCWD: "getcwd",
	unix.SYS_CHDIR: "chdir", unix.SYS_FCHDIR: "fchdir", unix.SYS_CHROOT: "chroot", unix.SYS_FCHMOD: "fchmod",
	unix.SYS_FCHMODAT: "fchmodat", unix.SYS_FCHMODAT2: "fchmodat2", unix.SYS_FCHOWN: "fchown",
	unix.SYS_FCHOWNAT: "fchownat", unix.SYS_UMASK: "umask", unix.SYS_GETTIMEOFDAY: "gettimeofday",
	unix.SYS_GETRLIMIT: "getrlimit", unix.SYS_GETRUSAGE: "getrusage", unix.SYS_PRLIMIT64: "prlimit64",
	unix.SYS_SYSINFO: "sysinfo", unix.SYS_TIMES: "times", unix.SYS_PTRACE: "ptrace", unix.SYS_SETUID: "setuid",
	unix.SYS_SETGID: "setgid", unix.SYS_SETREUID: "setreuid", unix.SYS_SETREGID: "setregid",
	unix.SYS_SETRESUID: "setresuid", unix.SYS_SETRESGID: "setresgid", unix.SYS_SETGROUPS: "setgroups",
	unix.SYS_SETFSUID: "setfsuid", unix.SYS_SETFSGID: "setfsgid", unix.SYS_SETSID: "setsid",
	unix.SYS_SETPGID: "setpgid", unix.SYS_GETPGID: "getpgid", unix.SYS_CAPGET: "capget",
	unix.SYS_CAPSET: "capset", unix.SYS_SIGALTSTACK: "sigaltstack", unix.SYS_STATFS: "statfs",
	unix.SYS_FSTATFS: "fstatfs", unix.SYS_PERSONALITY: "personality",
	unix.SYS_SCHED_SETAFFINITY: "sched_setaffinity", unix.SYS_SCHED_GETAFFINITY: "sched_getaffinity",
	unix.SYS_SCHED_SETSCHEDULER: "sched_setscheduler", unix.SYS_SETPRIORITY: "setpriority",
	unix.SYS_PRCTL: "prctl", unix.SYS_PIVOT_ROOT: "pivot_root", unix.SYS_MOUNT: "mount",
	unix.SYS_UMOUNT2: "umount2", unix.SYS_MOUNT_SETATTR: "mount_setattr", unix.SYS_MOVE_MOUNT: "move_mount",
	unix.SYS_OPEN_TREE: "open_tree", unix.SYS_FSOPEN: "fsopen", unix.SYS_FSCONFIG: "fsconfig",
	unix.SYS_FSMOUNT: "fsmount", unix.SYS_FSPICK: "fspick", unix.SYS_SETHOSTNAME: "sethostname",
	unix.SYS_SETDOMAINNAME: "setdomainname", unix.SYS_QUOTACTL: "quotactl", unix.SYS_QUOTACTL_FD: "quotactl_fd",
	unix.SYS_FUTEX: "futex", unix.SYS_FUTEX_WAITV: "futex_waitv", unix.SYS_EPOLL_CREATE1: "epoll_create1",
	unix.SYS_EPOLL_CTL: "epoll_ctl", unix.SYS_EPOLL_PWAIT: "epoll_pwait", unix.SYS_EPOLL_PWAIT2: "epoll_pwait2",
	unix.SYS_EVENTFD2: "eventfd2", unix.SYS_TIMERFD_CREATE: "timerfd_create",
	unix.SYS_TIMERFD_SETTIME: "timerfd_settime", unix.SYS_TIMER_CREATE: "timer_create",
	unix.SYS_TIMER_SETTIME: "timer_settime", unix.SYS_TIMER_DELETE: "timer_delete",
	unix.SYS_SIGNALFD4: "signalfd4", unix.SYS_SET_TID_ADDRESS: "set_tid_address",
	unix.SYS_SET_ROBUST_LIST: "set_robust_list", unix.SYS_RSEQ: "rseq", unix.SYS_OPENAT: "openat",
	unix.SYS_OPENAT2: "openat2", unix.SYS_MKDIRAT: "mkdirat", unix.SYS_MKNODAT: "mknodat",
	unix.SYS_UNLINKAT: "unlinkat", unix.SYS_RENAMEAT: "renameat", unix.SYS_RENAMEAT2: "renameat2",
	unix.SYS_LINKAT: "linkat", unix.SYS_SYMLINKAT: "symlinkat", unix.SYS_READLINKAT: "readlinkat",
	unix.SYS_FACCESSAT: "faccessat", unix.SYS_FACCESSAT2: "faccessat2", unix.SYS_NEWFSTATAT: "newfstatat",
	unix.SYS_STATX: "statx", unix.SYS_UTIMENSAT: "utimensat", unix.SYS_PPOLL: "ppoll",
	unix.SYS_PSELECT6: "pselect6", unix.SYS_UNSHARE: "unshare", unix.SYS_SETNS: "setns",
	unix.SYS_SPLICE: "splice", unix.SYS_TEE: "tee", unix.SYS_PIPE2: "pipe2",
	unix.SYS_INOTIFY_INIT1: "inotify_init1", unix.SYS_INOTIFY_ADD_WATCH: "inotify_add_watch",
	unix.SYS_FANOTIFY_INIT: "fanotify_init", unix.SYS_FANOTIFY_MARK: "fanotify_mark",
	unix.SYS_NAME_TO_HANDLE_AT: "name_to_handle_at", unix.SYS_OPEN_BY_HANDLE_AT: "open_by_handle_at",
	unix.SYS_PROCESS_VM_READV: "process_vm_readv", unix.SYS_GETRANDOM: "getrandom",
	unix.SYS_MEMFD_CREATE: "memfd_create", unix.SYS_BPF: "bpf", unix.SYS_PERF_EVENT_OPEN: "perf_event_open",
	unix.SYS_SECCOMP: "seccomp", unix.SYS_COPY_FILE_RANGE: "copy_file_range",
	unix.SYS_CLOSE_RANGE: "close_range", unix.SYS_KEYCTL: "keyctl", unix.SYS_ADD_KEY: "add_key",
	unix.SYS_CLOCK_GETTIME: "clock_gettime", unix.SYS_CLOCK_GETRES: "clock_getres",
	unix.SYS_MEMBARRIER: "membarrier", unix.SYS_SETXATTR: "setxattr", unix.SYS_FSETXATTR: "fsetxattr",
	unix.SYS_GETXATTR: "getxattr", unix.SYS_FGETXATTR: "fgetxattr", unix.SYS_LISTXATTR: "listxattr",
	unix.SYS_FLISTXATTR: "flistxattr", unix.SYS_REMOVEXATTR: "removexattr", unix.SYS_UNAME: "uname",
	unix.SYS_MLOCK: "mlock", unix.SYS_MINCORE: "mincore", unix.SYS_MREMAP: "mremap", unix.SYS_PREADV: "preadv",
	unix.SYS_PWRITEV: "pwritev", unix.SYS_PREADV2: "preadv2", unix.SYS_PWRITEV2: "pwritev2",
	unix.SYS_IO_URING_SETUP: "io_uring_setup", unix.SYS_IO_URING_ENTER: "io_uring_enter",
	unix.SYS_IO_URING_REGISTER: "io_uring_register", unix.SYS_LANDLOCK_CREATE_RULESET: "landlock_create_ruleset",
	unix.SYS_LANDLOCK_ADD_RULE: "landlock_add_rule", unix.SYS_LANDLOCK_RESTRICT_SELF: "landlock_restrict_self",
	unix.SYS_RESTART_SYSCALL: "restart_syscall",
}
