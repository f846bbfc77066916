// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtimetest

// kernelFiles are writes to the kernel's files, and reads of those that tell
// of the host.
var kernelFiles = []attempt{
	both("write the host's sysctls", eacces, `result = each(lambda p: write(p, '1'), there('/proc/sys/', '''kernel/core_pattern kernel/modprobe kernel/sysrq
    kernel/panic kernel/randomize_va_space kernel/kptr_restrict kernel/yama/ptrace_scope kernel/perf_event_paranoid
    kernel/unprivileged_bpf_disabled kernel/dmesg_restrict kernel/hostname kernel/domainname vm/overcommit_memory vm/drop_caches vm/panic_on_oom
    vm/swappiness vm/mmap_min_addr fs/file-max fs/suid_dumpable fs/protected_hardlinks fs/protected_symlinks fs/inotify/max_user_instances
    user/max_user_namespaces user/max_mnt_namespaces'''))`),
	both("write the sysctls of the sandbox's own network", eacces, `result = each(lambda p: write(p, '1'), there('/proc/sys/', '''net/ipv4/ip_forward
    net/ipv4/conf/all/forwarding net/ipv4/ip_local_port_range net/ipv4/ping_group_range net/ipv6/conf/all/forwarding'''))`),
	// A namespace's root owns some of these: the read-only mount is what refuses.
	{name: "write the sysctls of the sandbox's own processes and messages", user: eacces, root: eacces + " or " + erofs,
		do: `got = {each(lambda p: write(p, '1'), [p]) for p in there('/proc/sys/', 'kernel/pid_max kernel/shmmax kernel/shmmni kernel/msgmax kernel/sem fs/mqueue/queues_max')}
got = got - {'REFUSED EROFS'} or got
result = ', '.join(got)`},
	both("open the host's sysctls to everybody", erofs, `os.chmod('/proc/sys/kernel/core_pattern', 0o666)`),
	both("pull the host's emergency keys", eacces+" or "+enoent, `write('/proc/sysrq-trigger', 's')`),
	both("move the host's interrupts", eacces, `result = each(lambda p: write(p, '1'), there('/proc/irq/', 'default_smp_affinity 0/smp_affinity 1/smp_affinity'))`),
	both("make files in the kernel's file system", enoent, `result = each(lambda d: open(d + '/new', 'w'), ['/proc', '/proc/self', '/proc/sys', '/proc/sys/kernel'])`),
	both("write the kernel's object tree", enoent, `result = each(lambda n: write('/sys/' + n, '1'), ['kernel/uevent_helper', 'power/state', 'kernel/mm/ksm/run',
    'kernel/debug/x', 'kernel/security/x', 'kernel/tracing/trace', 'module/kernel/parameters/panic', 'fs/cgroup/release_agent', 'firmware/x',
    'fs/cgroup/memory/release_agent', 'class/net/lo/mtu', 'block/vda/uevent', 'bus/pci/rescan'])`),
	both("make files in the kernel's object tree", erofs, `os.mkdir('/sys/new')`),
	both("find a control file system that can be written", "NONE", `bad = {'cgroup', 'cgroup2', 'sysfs', 'debugfs', 'tracefs', 'securityfs', 'bpf', 'pstore', 'configfs', 'fusectl',
    'binfmt_misc', 'devtmpfs', 'efivarfs', 'selinuxfs', 'resctrl', 'mqueue', 'hugetlbfs', 'nsfs', 'btrfs', 'ext4', 'xfs'}
lines = [l.split() for l in read('/proc/mounts').decode().splitlines()]
assert 'proc' in [f[2] for f in lines]
result = ', '.join(f[1] for f in lines if f[2] in bad and 'rw' in f[3].split(',')) or 'NONE'`),
	both("read kernel files that tell of the host", "EMPTY", `full = [p for p in there('/proc/', '''cgroups interrupts kcore key-users keys kmsg kpagecgroup kpagecount kpageflags
    latency_stats locks sched_debug slabinfo softirqs timer_list timer_stats vmallocinfo''') if open(p, 'rb').read(64)]
result = ', '.join(full) or 'EMPTY'`),
	both("list kernel directories that tell of the host", "EMPTY", `full = [p for p in ('/proc/acpi', '/proc/asound', '/proc/bus', '/proc/fs', '/proc/scsi') if os.path.isdir(p) and os.listdir(p)]
result = ', '.join(full) or 'EMPTY'`),
	both("unmask a kernel file", eperm, `result = each(lambda p: call('umount2', p, 2), [b'/proc/cgroups', b'/proc/fs', b'/proc/kcore', b'/proc/keys', b'/proc/locks', b'/proc/timer_list', b'/proc/sys',
    b'/proc/sysrq-trigger'])`),
	// Masked where a driver can; else the kernel shows no addresses to those without privileges.
	both("find where the kernel is in memory", "ZEROS", `lines = [l.split() for l in read('/proc/kallsyms').decode().splitlines()[:2000]]
result = 'ZEROS' if all(int(f[0], 16) == 0 for f in lines) else 'ADDRESSES'`),
	both("find where the host's memory is", "ZEROS", `lines = read('/proc/iomem').decode().splitlines() if os.path.exists('/proc/iomem') else []
result = 'ZEROS' if all(l.split()[0] == '00000000-00000000' for l in lines) else 'ADDRESSES'`),
	both("find where modules are in memory", "ZEROS", `lines = [l.split() for l in read('/proc/modules').decode().splitlines()] if os.path.exists('/proc/modules') else []
result = 'ZEROS' if all(int(f[5], 16) == 0 for f in lines) else 'ADDRESSES'`),
	both("read the physical pages of one's own memory", "ZEROS", `f = os.open('/proc/self/pagemap', os.O_RDONLY)
m = mmap.mmap(-1, 4096); m[0] = 1
at = ctypes.addressof(ctypes.c_char.from_buffer(m))
entry = struct.unpack('Q', os.pread(f, 8, at // 4096 * 8))[0]
assert entry >> 63
result = 'ZEROS' if entry & ((1 << 55) - 1) == 0 else 'FRAME'`),
	both("read the kernel's log", eperm, `call('syslog', 3, ctypes.create_string_buffer(4096), 4096)`),
	both("read the host's control group paths", "NONE", `lines = read('/proc/self/cgroup').decode().split()
found = [l for l in lines if 'sandpit' in l or l.count('/..') > 1]
result = ', '.join(found) or 'NONE'`),
	both("read the host's mounts through process 1", "NONE", `try: text = read('/proc/1/mountinfo').decode()
except OSError: text = ''
result = 'FOUND' if os.path.dirname(FACTS['dir']) in text or FACTS['image'] in text else 'NONE'`),
}

// zeros calls each of the names with no arguments: what a filter lets through
// would fail in another way.
const zeros = `result = each(lambda n: call(n, 0, 0, 0, 0, 0, 0), `

// kernelCalls are system calls that are not a sandbox's business.
var kernelCalls = []attempt{
	both("use the keyrings", eperm, zeros+`['keyctl', 'add_key', 'request_key'])`),
	both("add a key to the user's keyring", eperm, `call('add_key', b'user', b'sandpit', b'x', 1, -4)`),
	both("read the session keyring", eperm, `call('keyctl', 11, -3, ctypes.create_string_buffer(64), 64)`),
	both("load a program into the kernel", eperm, `attr = ctypes.create_string_buffer(struct.pack('IIIII', 2, 4, 8, 1, 0), 128)
result = each(lambda c: call('bpf', c, attr, 128), [0, 5])`),
	both("open a performance counter", eperm, `attr = ctypes.create_string_buffer(struct.pack('IIQ', 1, 128, 0), 128)
result = each(lambda pid: call('perf_event_open', attr, pid, -1, -1, 0), [0, 1])`),
	both("handle page faults in user space", eperm, `result = each(lambda f: call('userfaultfd', f), [0, 1])`),
	both("queue calls past the filter", eperm, `p = ctypes.create_string_buffer(120)
result = each(lambda n: call(n, 1, p, 0, 0, 0, 0), ['io_uring_setup', 'io_uring_enter', 'io_uring_register'])`),
	both("load another kernel", eperm, zeros+`['kexec_load', 'kexec_file_load'])`),
	both("restart the host", eperm, `call('reboot', 0xfee1dead, 672274793, 0, 0)`),
	both("load and unload kernel modules", eperm, `result = each(lambda n: call(n, 0, 0, 0), ['init_module', 'delete_module'])`),
	both("load a kernel module from a file", eperm, `call('finit_module', os.open('/workspace', os.O_RDONLY), b'', 0)`),
	both("add and remove swap", eperm, `result = each(lambda n: call(n, b'/workspace/swap', 0), ['swapon', 'swapoff'])`),
	both("write down all processes that end", eperm, `call('acct', b'/workspace/acct')`),
	{name: "reach the host's ports", do: zeros + `['iopl', 'ioperm'])`, user: eperm, root: eperm, only: "amd64"},
	both("set the host's clock", eperm, `t = ctypes.create_string_buffer(struct.pack('qq', 1, 0))
result = each(lambda n: call(n, t, 0) if n == 'settimeofday' else call(n, 0, t), ['settimeofday', 'clock_settime'])`),
	both("tune the host's clock", eperm, `t = ctypes.create_string_buffer(struct.pack('I', 1), 256)
result = each(lambda n: call(n, t) if n == 'adjtimex' else call(n, 0, t), ['adjtimex', 'clock_adjtime'])`),
	both("name the host", eperm, `result = each(lambda n: call(n, b'x', 1), ['sethostname', 'setdomainname'])`),
	both("set quotas", eperm, `result = each(lambda n: call(n, 0, 0, 0, 0), ['quotactl', 'quotactl_fd'])`),
	both("talk to the server of a network file system", eperm+" or "+enosys, `call('nfsservctl', 0, 0, 0)`),
	both("look up a directory entry by its cookie", eperm+" or "+enosys, `call('lookup_dcookie', 0, 0, 0)`),
	both("run as another system or without address randomisation", eperm, `result = each(lambda p: call('personality', p), [0x40000, 0x400000, 0x100000, 0x1, 0x6, 0xf])`),
	both("map pages into pipes", enosys, `r, w = os.pipe()
call('vmsplice', w, iovec(ctypes.addressof(ctypes.create_string_buffer(16)), 16), 1, 0)`),
	both("watch whole file systems", eperm, `result = each(lambda f: call('fanotify_init', f, 0), [0, 0x200, 0x600, 0xc])`),
	both("move pages of process 1", eperm, `result = each(lambda n: call(n, 1, 0, 0, 0, 0, 0), ['move_pages', 'migrate_pages'])`),
	both("hang up the terminal of the host", eperm, `call('vhangup')`),
	both("use a call that no list knows", enosys, `result = each(lambda n: raw(n, 0, 0, 0), [600, 999, 5000])`),
	{name: "use calls of another word size by number", only: "amd64", user: enosys + " or KILLED SIGSYS", root: enosys + " or KILLED SIGSYS",
		do: `result = each(lambda n: raw(0x40000000 | n, 0, 0, 0), [39, 165, 272, 512])`},
	{name: "use calls of another word size by their own gate", only: "amd64", user: compat, root: compat,
		// getpid, unshare(NEWUSER), keyctl and mount of i386.
		do: i386 + `result = each(lambda c: gate(*c), [(20, 0), (310, 0x10000000), (288, 0), (21, 0)])`},
}

// compat is what a call of the i386 table must end in on x86-64: the filter
// knows only the kernel's own table, and lets nothing of the other pass.
const compat = enosys + " or " + eperm + " or KILLED SIGSYS"

// i386 defines gate, which makes a 32-bit system call from a 64-bit process.
const i386 = `code = bytes.fromhex('5389f889f3cd805bc3') # push rbx; mov eax, edi; mov ebx, esi; int 0x80; pop rbx; ret
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(code)
entry = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
def gate(number, argument):
    r = entry(number, argument)
    if -4096 < r < 0: raise OSError(-r, os.strerror(-r))
`
